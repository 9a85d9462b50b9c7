"""A small writer of ONNX graphs: every operation is a call that returns the name of its result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from cavity.util.version import __version__

#: The newest operator set that onnxruntime runs.
OPSET = 26
FLOAT, UINT8, INT64, DOUBLE = 1, 2, 7, 11


class Graph:
    """Nodes and constants, in order of creation."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("exporting to ONNX needs onnx: pip install 'cavity[onnx]'") from error
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def op(
        self, kind: str, *inputs: str, name: str | None = None, unused: Sequence[str] = (), **attributes: Any
    ) -> str:
        """The first result of one operation; ``name`` it if it is an output of the graph."""
        result = name or f"t{len(self.nodes)}"
        results = [result, *(f"{result}_{other}" for other in unused)]
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), results, **attributes))
        return result

    def constant(self, values: Any, dtype: Any) -> str:
        """An array that is part of the model."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def axes(self, *numbers: int) -> str:
        return self.constant(numbers, np.int64)

    def cast(self, x: str, to: int) -> str:
        return self.op("Cast", x, to=to)

    def model(
        self, x: tuple[int, int], outputs: dict[str, tuple[int, *tuple[int, ...]]], classes: Sequence[str]
    ) -> bytes:
        """The serialised model; ``x`` and ``outputs`` are (type, columns), without columns for a vector.

        Class names are stored in the metadata entry ``classes``, as a JSON list.
        """
        helper = self.onnx.helper
        first, *others = (
            helper.make_tensor_value_info(name, kind, ["samples", *columns])
            for name, (kind, *columns) in {"x": x, **outputs}.items()
        )
        graph = helper.make_graph(self.nodes, "cavity", [first], others, self.constants)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], producer_name="cavity", producer_version=__version__)
        model.ir_version = helper.find_min_ir_version_for([opset])
        helper.set_model_props(model, {"classes": json.dumps(list(classes))})
        self.onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString()
        return content

"""What is to be done with the columns of a table. Importing it is cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cavity.data.encoding import Encoding

ENCODINGS = ("one-hot", "ordinal")
IMPUTATIONS = ("median", "mean", "none")
TASKS = ("classification", "regression")


class Treatment(NamedTuple):
    """``task`` None: labels are classes unless they look like measurements, which is an error that asks. ``text`` names
    columns that are texts although they may look like numbers, ``drop`` those to leave out, with commas."""

    task: str | None = None
    encode: str = "one-hot"
    impute: str = "median"
    text: str = ""
    drop: str = ""
    #: What an earlier table was given, to be done again.
    fitted: Encoding | None = None

    def named(self, which: str) -> list[str]:
        """The columns of an option."""
        return [name.strip() for name in str(getattr(self, which)).split(",") if name.strip()]

    @property
    def texts(self) -> list[str]:
        """The columns that are to be taken as texts."""
        return self.named("text") if self.fitted is None else self.fitted.texts


#: What is done where nobody says otherwise.
USUAL = Treatment()

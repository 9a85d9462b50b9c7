"""``cavity report --serve``: one page, for this machine only, that follows its run."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import cavity
from cavity.cli import main
from cavity.report import serve as serving
from cavity.report.serve import MOST_CONNECTIONS, Page, Server, serve
from cavity.runs import Config, train

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cavity.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "run"
    train(Config(dataset="digits", hidden=(11,), epochs=1, threads=1), folder)
    return folder


@contextmanager
def served(page):
    with Server(page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, method="GET", path="/", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{server.server_port}"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_the_page_is_served_with_leave_to_ask_again(run_folder):
    page = Page([run_folder])
    assert page.refresh()
    assert not page.refresh(), "nothing has changed"
    with served(page) as server:
        answer, content = ask(server)
        assert answer.status == 200
        assert b"<h1>run</h1>" in content
        assert b"connect-src &#39;self&#39;" in content
        assert b"location.reload" in content
        head, nothing = ask(server, "HEAD")
        assert nothing == b""
        assert head.getheader("ETag") == answer.getheader("ETag")
        assert int(head.getheader("Content-Length")) == len(content)


def test_a_file_on_disk_asks_nobody(run_folder):
    main(["report", str(run_folder), "--out", str(run_folder.parent / "page.html")])
    html = (run_folder.parent / "page.html").read_text()
    assert "connect-src" not in html
    assert "fetch(" not in html


@pytest.mark.parametrize("path", ["/config.toml", "/report.html", "/../run/config.toml", "/?x", "http://a/", "/%2e"])
def test_nothing_else_is_served(run_folder, path):
    with served(Page([run_folder])) as server:
        answer, content = ask(server, path=path)
        assert answer.status == 404
        assert b"digits" not in content


def test_other_methods_and_other_names_of_this_machine_are_refused(run_folder):
    with served(Page([run_folder])) as server:
        assert ask(server, "POST")[0].status == 501
        assert ask(server, host="evil.example")[0].status == 403
        assert ask(server, host=f"evil.example:{server.server_port}")[0].status == 403
        assert ask(server, host=f"localhost:{server.server_port}")[0].status == 200
        assert server.socket.getsockname()[0] == "127.0.0.1"


def test_silent_connections_are_bounded_and_closed(run_folder, monkeypatch):
    monkeypatch.setattr(serving.Handler, "timeout", 0.2)
    with served(Page([run_folder])) as server:
        address = ("127.0.0.1", server.server_port)
        silent = [socket.create_connection(address, timeout=20) for _ in range(MOST_CONNECTIONS + 4)]
        assert [connection.recv(10) for connection in silent] == [b""] * len(silent), "all are closed"
        assert ask(server)[0].status == 200, "and there is room again"
        for connection in silent:
            connection.close()


def test_a_run_that_goes_on_gets_a_new_page(run_folder, tmp_path):
    copy = Path(shutil.copytree(run_folder, tmp_path / "copy"))
    page = Page([copy])
    page.refresh()
    first = page.served
    lines = (copy / "metrics.jsonl").read_text()
    (copy / "metrics.jsonl").write_text(lines + lines.replace('"epoch": 1', '"epoch": 2'))
    assert page.refresh()
    assert page.served.tag != first.tag
    assert b"2 epochs" in page.served.content


def test_a_run_without_a_checkpoint_is_waited_for(run_folder, tmp_path):
    copy = Path(shutil.copytree(run_folder, tmp_path / "<b>copy"))
    (copy / "checkpoint.safetensors").rename(tmp_path / "aside")
    page = Page([copy])
    page.refresh()
    assert b"no checkpoint yet" in page.served.content
    assert b"<b>" not in page.served.content
    (tmp_path / "aside").rename(copy / "checkpoint.safetensors")
    page.refresh()
    whole = page.served
    assert b"<main" in whole.content
    (copy / "checkpoint.safetensors").unlink()
    page.refresh()
    assert page.served == whole, "the last page stays"


def test_serving_ends_when_told(run_folder):
    stop, addresses = threading.Event(), []

    def ready(address):
        addresses.append(address)
        stop.set()

    serve([run_folder], ready=ready, stop=stop)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", addresses[0])


def test_a_port_in_use_is_an_error_that_says_so(run_folder, capsys):
    with served(Page([run_folder])) as server:
        assert main(["report", str(run_folder), "--serve", "--port", str(server.server_port)]) == 2
    assert "cannot be used" in (said := capsys.readouterr().err)
    assert "--port" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "8000"], "--port is for --serve"),
        (["--serve", "--port", "70000"], "expected a whole number from 0 to 65535"),
        (["--serve", "--out", "x.html"], "--out does not go with --serve"),
    ],
)
def test_errors_name_the_option(run_folder, words, message, capsys):
    assert main(["report", str(run_folder), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_is_no_run_is_an_error_at_once(tmp_path, capsys):
    assert main(["report", str(tmp_path), "--serve"]) == 2
    assert "it is not a run" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_ends_it_without_an_error(run_folder):
    # Heard as in a terminal, even if the tests run in the background, where shells ignore SIGINT.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from cavity.cli import main; "
    )
    command = [sys.executable, "-c", program + "sys.exit(main(sys.argv[1:]))", "report", str(run_folder), "--serve"]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert "http://127.0.0.1:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
        assert (process.returncode, said) == (0, "")

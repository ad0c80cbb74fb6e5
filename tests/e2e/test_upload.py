# SPDX-License-Identifier: Apache-2.0
"""Sessions on their way to a server that records them: what is sent, and what becomes of it when the server is away, wrong
or slow, when the agent is killed, and when the disk is full."""
import gzip
import http.server
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import urllib.parse

import pytest

TOKEN = "secret-4711"


class Recorder(http.server.ThreadingHTTPServer):
    """A studio that keeps what it gets. A session that comes again under its Idempotency-Key is the same session."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.requests = []  # (method, path, query, headers, body)
        self.sessions = {}  # Idempotency-Key: what was in it; in the order of arrival
        self.told = []  # (path, headers, body) of logs, heartbeats and completions
        self.command = {"command_id": None, "profiling_command": None}
        self.answers = []  # functions of a handler that stand in for the next answers
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self):
        self.shutdown()
        self.server_close()
        self.thread.join()

    def handle_error(self, request, client_address):
        pass  # clients that are killed

    def order(self, number, kind, **config):
        with self.lock:
            self.command = {"command_id": number, "profiling_command": {"command_type": kind, "combined_config": config}}

    def completions(self):
        return [body for path, _, body in self.told if path.endswith("command_completion")]

    def wait_for(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            time.sleep(0.05)
        assert condition()

    def wait(self, count, seconds=30):
        end = time.monotonic() + seconds
        while len(self.sessions) < count and time.monotonic() < end:
            time.sleep(0.05)
        return list(self.sessions.values())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def answer(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def handle_request(self, method):
        length = int(self.headers.get("Content-Length", 0))
        data = self.rfile.read(length)
        if len(data) < length:
            return  # the client was killed; a server has not got such a session
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/api/v1/logs" or url.path.startswith("/api/metrics/"):
            self.handle_agent(url.path, data)
            return
        body = json.loads(gzip.decompress(data)) if self.headers.get("Content-Encoding") == "gzip" else data
        with self.server.lock:
            query = dict(urllib.parse.parse_qsl(url.query))
            self.server.requests.append((method, url.path, query, dict(self.headers), body))
            special = self.server.answers.pop(0) if self.server.answers and method == "POST" else None
        if special:
            special(self, body)
        elif method == "GET":
            self.answer(200, {"message": "ok"})
        else:
            self.take(body)
            self.answer(200, {"message": "ok", "gpid": 42})

    def handle_agent(self, path, data):
        """What the agent says of itself. The last command is repeated for ever, as the studio does."""
        body = json.loads(gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data)
        answer = {"status": "ok", "success": True, "message": ""}
        with self.server.lock:
            self.server.told.append((path, dict(self.headers), body))
            if path.endswith("heartbeat"):
                answer.update(self.server.command)
        self.answer(201 if path.endswith("logs") else 200, answer)

    def take(self, body):
        with self.server.lock:
            self.server.sessions.setdefault(self.headers["Idempotency-Key"], body)

    def do_GET(self):
        self.handle_request("GET")

    def do_POST(self):
        self.handle_request("POST")


@pytest.fixture
def studio():
    server = Recorder()
    yield server
    server.stop()


def agent_words(url, spool, *more, duration=1):
    return ["agent", "-u", "--token", TOKEN, "--service-name", "shop & co", "--server-host", url, "--api-server", url,
            "--spool-dir", spool, "-d", duration, "--capture", "poll", "--pids", os.getpid(), *more]


class Agent:
    """The agent in the background."""

    def __init__(self, cairn, *words, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("CAIRN")}
        self.process = subprocess.Popen([str(cairn.path), *map(str, words)], env={**clean, **env}, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        said = self.process.communicate(timeout=60)[0]
        return self.process.returncode, said


def starts(sessions):
    return [session["start_time"] for session in sessions]


def test_a_session_is_sent_as_gprofiler_does(cairn, studio, tmp_path):
    run = cairn.run(*agent_words(studio.url, tmp_path / "spool", "-v"))
    assert run.returncode == 0, run.stderr
    assert TOKEN not in run.stdout + run.stderr
    (health, upload) = studio.requests
    assert health[:2] == ("GET", "/api/v1/health_check")
    assert upload[:2] == ("POST", "/api/v2/profiles")
    for _, _, query, headers, _ in studio.requests:
        assert headers["GPROFILER-API-KEY"] == TOKEN
        assert headers["GPROFILER-SERVICE-NAME"] == "shop & co"
        assert query["service"] == "shop & co"
        assert query["hostname"] == os.uname().nodename
        assert time.strptime(query["timestamp"], "%Y-%m-%dT%H:%M:%S")
        assert TOKEN not in json.dumps(query)
    _, _, query, headers, body = upload
    assert query["version"] == cairn.run("--version").stdout.split()[1]
    assert headers["Content-Type"] == "application/json"
    assert list(body) == ["start_time", "end_time", "hostname", "profile", "cpu_avg", "mem_avg", "spawn_time", "gpid"]
    assert body["gpid"] == ""
    assert body["hostname"] == os.uname().nodename
    assert body["spawn_time"] <= body["start_time"] < body["end_time"]
    assert json.loads(body["profile"].split("\n")[0][2:])["metadata"]["hostname"] == os.uname().nodename
    assert not list((tmp_path / "spool").glob("*.session"))


def test_what_is_sent_is_what_is_written(cairn, studio, tmp_path):
    run = cairn.run(*agent_words(studio.url, tmp_path / "spool", "-o", tmp_path / "out"))
    assert run.returncode == 0, run.stderr
    assert studio.requests[-1][4]["profile"] == (tmp_path / "out/last_profile.col").read_text(encoding="utf-8")


def test_sessions_follow_each_other_with_the_gpid_of_the_server(cairn, studio, tmp_path):
    agent = Agent(cairn, *agent_words(studio.url, tmp_path / "spool", "-c"))
    studio.wait(3)
    status, said = agent.stop()
    assert status == 0, said
    sessions = studio.wait(0)
    assert [session["gpid"] for session in sessions][:3] == ["", 42, 42]
    assert starts(sessions) == sorted(starts(sessions))


def test_the_token_is_in_no_list_of_processes(cairn, studio, tmp_path):
    agent = Agent(cairn, *agent_words(studio.url, tmp_path / "spool", "-c"), GPROFILER_TOKEN="secret-of-env")
    studio.wait(1)
    folder = pathlib.Path(f"/proc/{agent.process.pid}")
    line = (folder / "cmdline").read_bytes()
    assert TOKEN.encode() not in line and b"--service-name" in line
    status, said = agent.stop()
    assert status == 0 and TOKEN not in said
    for path in (tmp_path / "spool").iterdir():
        assert TOKEN.encode() not in path.read_bytes()


def test_a_token_from_the_environment_or_a_file(cairn, studio, tmp_path):
    words = agent_words(studio.url, tmp_path / "spool")
    at = words.index("--token")
    del words[at : at + 2]
    (tmp_path / "key").write_text("from-file\n", encoding="utf-8")
    assert cairn.run(*words, env={"GPROFILER_TOKEN": "from-env"}).returncode == 0
    assert cairn.run(*words, "--token-file", tmp_path / "key").returncode == 0
    assert {r[3]["GPROFILER-API-KEY"] for r in studio.requests} == {"from-env", "from-file"}
    assert cairn.run(*words).returncode == 2
    (tmp_path / "key").write_text("\n", encoding="utf-8")
    assert "holds no token" in cairn.run(*words, "--token-file", tmp_path / "key").stderr


def test_a_server_that_does_not_know_the_token_ends_the_agent(cairn, tmp_path):
    class Closed(Recorder):
        pass

    server = Closed()
    server.RequestHandlerClass = type("Refusing", (Handler,), {
        "do_GET": lambda self: self.answer(400, {"message": "Invalid API key"})})
    try:
        run = cairn.run(*agent_words(server.url, tmp_path / "spool"))
    finally:
        server.stop()
    assert run.returncode == 1
    assert "Invalid API key" in run.stderr
    assert not server.sessions


def test_a_session_waits_for_a_server_that_is_away(cairn, tmp_path):
    gone = Recorder()
    gone.stop()
    run = cairn.run(*agent_words(gone.url, tmp_path / "spool"))
    assert run.returncode == 1
    assert "1 sessions have not been sent; 1 are kept for the next run" in run.stderr
    assert len(list((tmp_path / "spool").glob("*.session"))) == 1
    back = Recorder()
    try:
        run = cairn.run(*agent_words(back.url, tmp_path / "spool"))
        assert run.returncode == 0, run.stderr
        assert len(back.sessions) == 2
        assert starts(back.sessions.values()) == sorted(starts(back.sessions.values()))
    finally:
        back.stop()


def close_before_the_answer(handler, body):
    handler.take(body)  # it has the session, and the client cannot know
    handler.close_connection = True
    handler.connection.close()


def close_inside_the_answer(handler, body):
    handler.take(body)
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"mess")
    handler.close_connection = True


def garbage(handler, _body):
    handler.wfile.write(random.randbytes(500))
    handler.close_connection = True


def status(code):
    return lambda handler, _body: handler.answer(code, {"message": "no"})


def sign_in_page(handler, _body):
    handler.answer(200, b"<html>Sign in to the network</html>")


def redirect_here(handler, _body):
    handler.answer(307, b"", Location=handler.path + "&again=1")


def redirect_away(handler, _body):
    handler.answer(302, b"", Location=f"http://localhost:{handler.server.server_address[1]}/api/v2/profiles")


@pytest.mark.parametrize("trouble", [close_before_the_answer, close_inside_the_answer, garbage, status(500), status(503),
                                     status(404), status(401), sign_in_page, redirect_here, redirect_away],
                         ids=lambda f: getattr(f, "__name__", "f"))
def test_every_session_arrives_once_and_in_order_whatever_the_server_answers(cairn, studio, tmp_path, trouble):
    studio.answers = [trouble, trouble]
    agent = Agent(cairn, *agent_words(studio.url, tmp_path / "spool", "-c"))
    studio.wait(4)
    code, said = agent.stop()
    assert code == 0, said
    assert TOKEN not in said
    sessions = studio.wait(0)
    assert len(sessions) >= 4
    assert starts(sessions) == sorted(starts(sessions))
    assert not list((tmp_path / "spool").glob("*.session"))


def test_a_session_that_is_too_large_for_the_server_is_given_up(cairn, studio, tmp_path):
    studio.answers = [status(413)]
    run = cairn.run(*agent_words(studio.url, tmp_path / "spool"))
    assert run.returncode == 0
    assert "a session is given up" in run.stdout and "413" in run.stdout
    assert not studio.sessions


def test_the_spool_is_bounded_and_says_what_gave_way(cairn, tmp_path):
    gone = Recorder()
    gone.stop()
    agent = Agent(cairn, *agent_words(gone.url, tmp_path / "spool", "-c", "--spool-sessions", 2, "-o", tmp_path / "out"))
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "out").glob("profile_*.col"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.1)
    code, said = agent.stop()
    assert code == 0
    assert "gave way in a full spool" in said
    assert len(list((tmp_path / "spool").glob("*.session"))) == 2


def test_two_agents_do_not_share_a_spool(cairn, studio, tmp_path):
    agent = Agent(cairn, *agent_words(studio.url, tmp_path / "spool", "-c"))
    studio.wait(1)
    run = cairn.run(*agent_words(studio.url, tmp_path / "spool"))
    agent.stop()
    assert run.returncode == 1
    assert "--spool-dir" in run.stderr


def fill(path):
    """Write until the disk is full."""
    filler = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while os.write(filler, b"x" * 4096):
            pass
    except OSError:
        os.close(filler)


def test_a_full_disk_loses_nothing_while_memory_holds_it(cairn, studio, tmp_path, as_root):
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=0700", "none", spool], check=False)
    if mount.returncode:
        pytest.skip("may not mount")
    try:
        fill(spool / "filler")
        studio.answers = [status(503)] * 2
        agent = Agent(cairn, *agent_words(studio.url, spool, "-c"))
        studio.wait(3)
        code, said = agent.stop()
        assert code == 0, said
        assert "waits in memory" in said
        sessions = studio.wait(0)
        assert len(sessions) >= 3 and starts(sessions) == sorted(starts(sessions))
    finally:
        subprocess.run(["umount", spool], check=True)


def test_kill_9_at_any_moment_and_a_server_that_comes_and_goes(cairn, tmp_path):
    """Each run takes up where the one before was killed. Nothing is lost, nothing comes twice, and the order holds."""
    chance = random.Random(4711)
    server = Recorder()
    port = server.server_address[1]
    arrived = dict(server.sessions)
    made = set()
    spool = tmp_path / "spool"
    for _ in range(8):
        agent = Agent(cairn, *agent_words(server.url, spool, "-c"))
        end = time.monotonic() + chance.uniform(1.0, 4.0)
        down_at = time.monotonic() + chance.uniform(0.0, 3.0)
        while time.monotonic() < end:
            made.update(path.name for path in spool.glob("*.session"))
            if server and time.monotonic() > down_at:
                server.stop()
                arrived.update(server.sessions)
                server = None
            time.sleep(0.01)
        agent.stop(signal.SIGKILL)
        if not server:
            server = Recorder(port)
            server.sessions.update(arrived)
    waiting = len(list(spool.glob("*.session")))
    agent = Agent(cairn, *agent_words(server.url, spool, "-c"))
    server.wait(len(server.sessions) + waiting + 1)
    agent.stop()
    server.stop()
    sessions = list(server.sessions.values())
    assert starts(sessions) == sorted(starts(sessions))
    assert not list(spool.glob("*.session"))
    assert len(sessions) >= len(made)


def upload_file(cairn, server, path, *more, **env):
    return cairn.run("upload-file", "--file-path", path, "--server-host", server, "--service-name", "shop", *more,
                     env={"GPROFILER_TOKEN": TOKEN, **env})


def test_a_file_is_sent_with_its_header_or_with_one_of_this_machine(cairn, studio, tmp_path):
    header = {"metadata": {"hostname": "elsewhere"}, "start_time": "2026-01-02T03:04:05", "end_time": "2026-01-02T03:05:05"}
    col = f"# {json.dumps(header)}\n0;;app;main 3"
    (tmp_path / "a.col").write_text(col, encoding="utf-8")
    (tmp_path / "b.folded").write_text("main;run 3\nmain 1\n", encoding="utf-8")
    for name in ("a.col", "b.folded"):
        run = upload_file(cairn, studio.url, tmp_path / name)
        assert run.returncode == 0, run.stderr
    first, second = studio.sessions.values()
    assert first["profile"] == col
    assert (first["start_time"], first["end_time"]) == (header["start_time"], header["end_time"])
    lines = second["profile"].split("\n")
    assert json.loads(lines[0][2:])["metadata"]["hostname"] == os.uname().nodename
    assert lines[1:] == [";main;run 3", ";main 1"]


def test_upload_file_fails_when_nothing_has_arrived(cairn, studio, tmp_path):
    (tmp_path / "a.folded").write_text("main 1\n", encoding="utf-8")
    studio.answers = [status(500)] * 4
    run = upload_file(cairn, studio.url, tmp_path / "a.folded")
    assert run.returncode == 1 and "500" in run.stderr and TOKEN not in run.stderr
    assert upload_file(cairn, "http://127.0.0.1:1", tmp_path / "a.folded").returncode == 1
    assert upload_file(cairn, studio.url, tmp_path / "none").returncode == 1
    assert not studio.sessions
    assert cairn.run("upload-file", "--file-path", tmp_path / "a.folded").returncode == 2


def test_upload_file_is_a_word_of_the_agent_too(cairn, studio, tmp_path):
    (tmp_path / "a.folded").write_text("main 1\n", encoding="utf-8")
    studio.answers = [close_before_the_answer]
    run = cairn.run("agent", "upload-file", "--file-path", tmp_path / "a.folded", "--server-host", studio.url,
                    "--service-name", "shop", "--token", TOKEN)
    assert run.returncode == 0, run.stderr
    assert len(studio.sessions) == 1


def test_the_log_is_sent_with_the_session_it_belongs_to(cairn, studio, tmp_path):
    run = cairn.run(*agent_words(studio.url, tmp_path / "spool"))
    assert run.returncode == 0, run.stderr
    batches = [(headers, body) for path, headers, body in studio.told if path == "/api/v1/logs"]
    assert batches
    headers, body = batches[-1]
    assert headers["X-Token"] == TOKEN and headers["X-Application-Name"] == "gprofiler"
    assert list(body) == ["batch_id", "metadata", "lost_logs_count", "logs"]
    assert body["metadata"]["service_name"] == "shop & co"
    assert [log["text"]["serial_no"] for log in body["logs"]] == list(range(1, len(body["logs"]) + 1))
    assert any(log["text"]["extra"]["cycle_id"] == body["metadata"]["run_id"] for log in body["logs"])
    assert TOKEN not in json.dumps(body)


def test_no_log_is_sent_against_the_users_will(cairn, studio, tmp_path):
    run = cairn.run(*agent_words(studio.url, tmp_path / "spool", "--dont-send-logs"))
    assert run.returncode == 0, run.stderr
    assert not studio.told


def follower(cairn, studio, tmp_path, *more):
    return Agent(cairn, *agent_words(studio.url, tmp_path / "spool", "--enable-heartbeat-server", "--heartbeat-interval", 1,
                                     "--dont-send-logs", *more))


def test_commands_of_the_server_are_done_once_and_reported_when_done(cairn, studio, tmp_path):
    pids = [os.getpid()]
    agent = follower(cairn, studio, tmp_path)
    studio.wait_for(lambda: studio.told)
    assert not studio.sessions
    studio.order("once", "start", duration=2, pids=pids)
    studio.wait_for(lambda: studio.told[-1][2].get("received_command_ids") == ["once"])
    assert not studio.completions()
    studio.wait_for(studio.completions)
    assert studio.completions()[0]["status"] == "completed" and studio.completions()[0]["execution_time"] >= 2
    assert len(studio.wait(1)) == 1

    studio.order("standing", "start", duration=1, pids=pids, continuous=True)
    assert len(studio.wait(3)) >= 3
    studio.order("between", "start", duration=1, pids=pids)
    studio.wait_for(lambda: len(studio.completions()) == 2)
    assert studio.completions()[1]["command_id"] == "between"
    count = len(studio.sessions)
    assert len(studio.wait(count + 2)) >= count + 2  # it goes on
    studio.order("wrong", "start", duration="long")
    studio.wait_for(lambda: len(studio.completions()) == 3)
    assert studio.completions()[2]["status"] == "failed"
    studio.order("stop", "stop")
    studio.wait_for(lambda: len(studio.completions()) == 5)
    assert [(c["command_id"], c["status"]) for c in studio.completions()[3:]] == [
        ("standing", "completed"), ("stop", "completed")]
    code, said = agent.stop()
    assert code == 0, said
    assert TOKEN not in said
    assert all(headers["Authorization"] == f"Bearer {TOKEN}" for _, headers, _ in studio.told)


def test_a_new_agent_does_not_repeat_the_last_command(cairn, studio, tmp_path):
    studio.order("long", "start", duration=60, pids=[os.getpid()])
    agent = follower(cairn, studio, tmp_path)
    studio.wait_for(lambda: studio.told and studio.told[-1][2].get("received_command_ids"))
    agent.stop(signal.SIGKILL)
    agent = follower(cairn, studio, tmp_path)
    studio.wait_for(studio.completions)
    assert studio.completions()[0]["status"] == "failed"
    beats = len(studio.told)
    studio.wait_for(lambda: len(studio.told) >= beats + 2)
    code, said = agent.stop()
    assert code == 0, said
    assert not studio.sessions and len(studio.completions()) == 1


def test_the_older_form_has_no_container_and_no_log(cairn, studio, tmp_path):
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    words = agent_words(studio.url, tmp_path / "spool", "--profile-api-version", "v1")
    words[words.index("--pids") + 1] = busy.pid
    try:
        run = cairn.run(*words)
    finally:
        busy.kill()
        busy.wait()
    assert run.returncode == 0, run.stderr
    assert studio.requests[-1][1] == "/api/v1/profiles"
    stacks = studio.requests[-1][4]["profile"].split("\n")[1:]
    assert stacks and all(line.startswith("sh;") for line in stacks)
    assert not studio.told

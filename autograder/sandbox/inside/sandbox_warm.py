"""The warm process: has imported torch once, knows no secret, forks one child a question.

Started with `python -I -S sandbox_warm.py FD`: FD is a Unix socket to the trusted parent. One JSON
object comes in (the settings), then requests: {"op": "spawn", "plan": ...} with three descriptors
(data, output, lifeline), {"op": "end", "pid": ...}. Each is answered with one JSON object. With
"copies" in its settings it forks no children, but further warm processes: one for each request,
which brings the Unix socket that the new one serves.

A spawn makes two processes, in the namespaces tier by way of a third that is gone at once:
    warm -> reaper -> child
The reaper is process 1 of the new process ids, or the subreaper of the child's family. It ends when
the child ends, when the lifeline closes (the parent closed it, or died) or when it is killed, and
takes every process of the family with it.
"""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import json
import os
import select
import signal
import site
import socket
import sys
import time

START_SECONDS = 20
END_SECONDS = 10
SWEEP_SECONDS = 10
HIGHEST = 1 << 20  # as many descriptors as there may be
DATA, REPORT = 3, 4  # the child's descriptors besides 0, 1 and 2


def main(fd: int) -> None:
    control = socket.socket(fileno=fd)
    settings, _ = _receive(control)
    try:
        ready = _prepare(settings)
    except Exception as error:
        _reply(control, {"error": f"{type(error).__name__}: {error}"})
        return
    _reply(control, ready)
    if settings.get("copies"):
        control = _copies(control)
        _reply(control, {"ready": True, "pid": os.getpid()})
    filters, mapped = {}, _mapped()
    reapers: set[int] = set()
    while message := _receive(control):
        request, descriptors = message
        if request["op"] == "end":
            _reply(control, {"exit": _end(request["pid"], reapers)})
            continue
        plan = request["plan"]
        plan["limits"]["address_space"] += mapped  # torch alone may have mapped 3 GiB
        if plan["tier"] == "limits":
            _reply(control, {"ready": True, "pid": os.getpid(), "notes": []})
            control.detach()
            _become_child(plan, settings, descriptors)
        tier = plan["tier"]
        if tier not in filters:
            filters[tier] = _seccomp(tier)
        answer = _spawn(plan, settings, descriptors, filters[tier], control)
        for descriptor in descriptors:
            os.close(descriptor)
        if answer.get("pid"):
            reapers.add(answer["pid"])
        _reply(control, answer)
    for pid in list(reapers):  # the parent is gone, and with it every lifeline
        _end(pid, reapers)


def _copies(control: socket.socket) -> socket.socket:
    """Makes a warm process of each connection that comes in; returns in each of them.

    Ends when nobody is left who could ask for one.
    """
    import sandbox_kernel

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    while message := _receive(control):
        (theirs,) = message[1]
        if os.fork() == 0:
            control.close()
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sandbox_kernel.prctl(sandbox_kernel.PR_SET_CHILD_SUBREAPER, 1)
            return socket.socket(fileno=theirs)
        os.close(theirs)
    os._exit(0)


def _prepare(settings: dict) -> dict:
    """Imports everything the children need; what is here, they inherit."""
    here = os.path.dirname(os.path.abspath(__file__))
    stdlib = [p for p in sys.path if p and p != here]
    settings["stdlib"] = stdlib
    sys.path[:] = [here, *stdlib, *settings["libraries"]]
    sys.argv = [""]
    site.setquit()
    site.sethelper()
    __import__("sandbox_serve")
    if settings["fork"]:
        import sandbox_kernel

        __import__("sandbox_isolate")
        __import__("sandbox_branch")
        sandbox_kernel.prctl(sandbox_kernel.PR_SET_CHILD_SUBREAPER, 1)
    for name in settings["preload"]:
        __import__(name)
    if "torch" in sys.modules:
        _first_calls(sys.modules["torch"])
    for name, path in settings["modules"]:
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.path.remove(here)
    if settings["fork"] and len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("a preloaded module started a thread, so forking is not safe")
    gc.collect()
    gc.freeze()  # the children share these pages for as long as nobody writes to them
    return {"ready": True}


def _first_calls(torch) -> None:
    """What torch looks up once (processor, kernels, autograd) is looked up here, on one thread."""
    torch.set_num_threads(1)
    x = torch.ones(1, 2, 3, requires_grad=True)
    layer = torch.nn.Linear(3, 3)
    scores = torch.nn.functional.softmax(layer(x) @ layer(x).transpose(1, 2), dim=-1)
    (scores @ x).sum().backward()


def _mapped() -> int:
    """Bytes of this process's address space; 0 where nothing says how many."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _seccomp(tier: str):
    import sandbox_filters

    return sandbox_filters.build_seccomp(own_files=tier == "namespaces", scoped_signals=True)


# --- a child, from fork to serving ---------------------------------------------------------------
def _spawn(plan: dict, settings: dict, descriptors: list[int], seccomp, control) -> dict:
    """Forks reaper and child; the answer has the reaper's pid, or why there is none."""
    reader, writer = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(control.detach())  # else the grader would not notice the warm process's end
        os.close(reader)
        try:
            _first(plan, settings, descriptors, seccomp, writer)
        except BaseException as error:
            _report(writer, {"error": str(error) or type(error).__name__})
        finally:
            os._exit(1)
    os.close(writer)
    answer: dict = {"notes": []}
    if plan["tier"] == "namespaces":
        os.waitpid(first, 0)  # the reaper is ours now: this process is a subreaper
    else:
        answer["pid"] = first
    for line in _lines(reader, time.monotonic() + START_SECONDS):
        answer["notes"] += line.pop("notes", [])
        answer.update(line)
    os.close(reader)
    if not answer.get("ready") and "error" not in answer:
        answer["error"] = "the child did not start in time"
    return answer


def _first(plan: dict, settings: dict, descriptors: list[int], seccomp, writer: int) -> None:
    import sandbox_isolate as isolate

    isolate.join_cgroups(plan)
    if plan["tier"] == "namespaces":
        isolate.new_namespaces(plan)
        reaper = os.fork()
        if reaper:
            _report(writer, {"pid": reaper})
            os._exit(0)
    _be_reaper(plan, settings, descriptors, seccomp, writer)


def _be_reaper(plan: dict, settings: dict, descriptors: list[int], seccomp, writer: int) -> None:
    """Builds the wall, forks the child behind it, and waits."""
    import sandbox_isolate as isolate
    import sandbox_kernel as kernel

    data, output, lifeline = descriptors
    own_pids = plan["tier"] == "namespaces"
    if own_pids:
        _report(writer, {"notes": isolate.new_root(plan)})
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # the child may not look into this process
    child = os.fork()
    if child == 0:
        try:
            _tidy_descriptors(data, output, writer)
            notes = isolate.lock_down(plan, seccomp)
            os.closerange(REPORT + 1, HIGHEST)  # the libraries of the last step leave one open
            isolate.check(plan)
            _report(REPORT, {"ready": True, "notes": notes})
        except BaseException as error:
            _report(REPORT, {"error": str(error) or type(error).__name__})
            os._exit(1)
        os.close(REPORT)
        _serve(plan, settings)
    for descriptor in (data, output, writer):
        os.close(descriptor)
    if own_pids:
        kernel.drop_capabilities()
    os._exit(_watch(child, lifeline, own_pids))


def _become_child(plan: dict, settings: dict, descriptors: list[int]) -> None:
    """The limits tier: no fork, no wall; this process answers, and ends with its one child."""
    import resource

    data, output, _ = descriptors
    report = os.open(os.devnull, os.O_WRONLY)
    _tidy_descriptors(data, output, report)
    limits = plan["limits"]
    bounds = {
        "RLIMIT_AS": limits["address_space"],
        "RLIMIT_CPU": limits["cpu_seconds"],
        "RLIMIT_FSIZE": limits["disk"],
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_CORE": 0,
    }
    for name, bound in bounds.items():
        try:
            resource.setrlimit(getattr(resource, name), (bound, bound))
        except (AttributeError, ValueError, OSError):  # macOS refuses some
            continue
    os.chdir(plan["work"])
    os.umask(0o077)
    _serve(plan, settings)


def _serve(plan: dict, settings: dict) -> None:
    import sandbox_serve

    status = 1
    try:
        sandbox_serve.fresh_state(
            plan["work"], plan["course"], settings["libraries"], settings["stdlib"]
        )
        scratch = sys.modules["sandbox_isolate"].SCRATCH if plan["tier"] == "namespaces" else ()
        writable = [*scratch, plan["work"]]
        sandbox_serve.serve(socket.socket(fileno=DATA), plan["limits"], writable)
        status = 0
    except (BrokenPipeError, ConnectionResetError):
        status = 0  # the grader has heard enough
    except BaseException as error:  # nothing may unwind into the warm process's own frames
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace")[:500])
    finally:
        os._exit(status)


def _tidy_descriptors(data: int, output: int, report: int) -> None:
    """Nothing open but the connection, the output and the report."""
    data, output, report = (fcntl.fcntl(d, fcntl.F_DUPFD, 64) for d in (data, output, report))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for source, target in ((output, 1), (output, 2), (data, DATA), (report, REPORT)):
        os.dup2(source, target, inheritable=target <= 2)
    os.closerange(REPORT + 1, HIGHEST)


# --- the end of a child --------------------------------------------------------------------------
def _watch(child: int, lifeline: int, own_pids: bool) -> int:
    """Waits for the child's end or the lifeline's; returns the exit status to pass on."""
    status = 0
    poll = select.poll()
    poll.register(os.pidfd_open(child), select.POLLIN)
    poll.register(lifeline, select.POLLIN)
    alive = True
    while alive:
        ready = [fd for fd, _ in poll.poll(1000)]
        for pid, code in _reap():
            if pid == child:
                status, alive = code, False
        alive = alive and lifeline not in ready
    if not own_pids:  # else the kernel ends all the others with this process
        _sweep()
    return status if status >= 0 else 128 - status


def _end(pid: int, reapers: set[int]) -> int | None:
    """Waits for a reaper whose lifeline is closed; by then nothing of its family is left."""
    if pid not in reapers:
        return None
    reapers.discard(pid)
    poll = select.poll()
    descriptor = os.pidfd_open(pid)
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(END_SECONDS * 1000):
        os.kill(pid, signal.SIGKILL)
    os.close(descriptor)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if any(child not in reapers for child in _children().get(os.getpid(), [])):
        _sweep(spare=reapers)
    return code


def _sweep(spare: frozenset | set = frozenset()) -> None:
    """Ends every descendant of this process, but for `spare` and theirs.

    Stopping comes first: what is stopped cannot fork, and the limit on processes bounds the rest.
    """
    deadline = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < deadline:
        stopped: set[int] = set()
        while fresh := set(_descendants(spare)) - stopped:
            for pid in fresh:
                _signal(pid, signal.SIGSTOP)
            stopped |= fresh
        if not stopped:
            return
        for pid in stopped:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.002)
        _reap(spare)


def _descendants(spare) -> list[int]:
    children = _children()
    found, queue = [], [os.getpid()]
    while queue:
        for pid in children.get(queue.pop(), []):
            if pid not in spare:
                found.append(pid)
                queue.append(pid)
    return found


def _children() -> dict[int, list[int]]:
    """Parent to children, of every process in sight."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):  # gone meanwhile
                continue
            children.setdefault(parent, []).append(int(name))
    return children


def _reap(spare=frozenset()) -> list[tuple[int, int]]:
    """The children that have ended, with their exit codes (negative for a signal)."""
    ended = []
    for pid in _children().get(os.getpid(), []) if spare else [-1]:
        while pid not in spare:
            try:
                found, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                break
            if found == 0:
                break
            ended.append((found, os.waitstatus_to_exitcode(status)))
    return ended


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


# --- messages ------------------------------------------------------------------------------------
def _receive(control: socket.socket) -> tuple[dict, list[int]] | None:
    """One line of JSON and the descriptors that came with it; None when the parent has gone."""
    text, descriptors = b"", []
    while not text.endswith(b"\n"):
        piece, fds, _, _ = socket.recv_fds(control, 1 << 16, 8)
        descriptors += fds
        if not piece:
            return None
        text += piece
    return json.loads(text), descriptors


def _reply(control: socket.socket, message: dict) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def _report(writer: int, message: dict) -> None:
    os.write(writer, json.dumps(message).encode() + b"\n")


def _lines(reader: int, deadline: float):
    """The JSON lines of a pipe until it is closed or the deadline has passed."""
    text = b""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0 and poll.poll(left * 1000):
        piece = os.read(reader, 1 << 16)
        if not piece:
            return
        text += piece
        *lines, text = text.split(b"\n")
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main(int(sys.argv[1]))

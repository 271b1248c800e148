"""A process that has everything imported and forks a worker per run: a sweep is hundreds of runs.

Reads one JSON object per line: {"do": "start", "argv": […], "env": {…}, "log": path} answers {"pid": n};
{"do": "wait", "pid": n} answers {"exit": code} or {"signal": n}; {"do": "until_stopped", "pid": n} answers
{"stopped": true} once the process has stopped itself, or how it ended.
"""

import json
import os
import sys

# The point of it all: imported once.
import worker.cli.main
import worker.cli.recover
import worker.cli.run
import worker.cli.sandbox
import worker.sandbox.command
from worker import faults


def _child(argv: list[str], env: dict[str, str], log: str) -> None:
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.environ.update(env)
    sys.argv = ["worker", *argv]
    faults._plan = faults._parse(env.get("WORKER_FAULTS", ""))
    code = 1
    try:
        worker.cli.main.main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # noqa: BLE001 - whatever a worker raises belongs into its log
        import traceback  # noqa: PLC0415

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ending(status: int) -> dict[str, object]:
    if os.WIFSTOPPED(status):
        return {"stopped": True}
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"exit": os.WEXITSTATUS(status)}


def main() -> None:
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["do"] == "start":
            pid = os.fork()
            if pid == 0:
                _child(ask["argv"], ask["env"], ask["log"])
            answer: dict[str, object] = {"pid": pid}
        else:
            flags = os.WUNTRACED if ask["do"] == "until_stopped" else 0
            answer = _ending(os.waitpid(ask["pid"], flags)[1])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()

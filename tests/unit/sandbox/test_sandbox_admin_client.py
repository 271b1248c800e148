import inspect

from worker.sandbox.admin.door import COMMANDS
from worker.sandbox.admin_client import SandboxAdmin

BUILT_ON_OTHERS = {"do", "do_now", "post_photo"}


def test_every_method_of_the_client_is_a_command_of_the_server():
    methods = {name for name, _ in inspect.getmembers(SandboxAdmin, inspect.isfunction) if name[0] != "_"}
    assert methods - BUILT_ON_OTHERS <= set(COMMANDS)


def test_every_command_of_the_server_has_a_method_in_the_client():
    assert all(hasattr(SandboxAdmin, name) for name in COMMANDS)

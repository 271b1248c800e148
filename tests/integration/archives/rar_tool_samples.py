"""RAR samples made by rar itself, in the older format (which rar writes up to version 6) and the one of today."""

from sample_registry import tool_sample

STUB = """printf '#!/bin/sh\\necho This unpacks nothing\\nexit 1\\n' >../stub.sfx"""
LINK = {"link": len("readme.txt")}


def both(kind, options, parts="a.rar", *, volumes=False, before="", after="", **about):
    """One sample of each generation."""
    for generation, tool, version in (("rar4", "rar6", "-ma4"), ("rar5", "rar", "-ma5")):
        line = f"{before}{tool} a -idq -r {version} {options} ../a.rar .{after.replace('rar ', f'{tool} ')}"
        form = f"{generation} volumes" if volumes else generation
        tool_sample(f"{generation}_tool_{kind}", form, tool, line, parts, **about)


ENCRYPTED = {"marks": ("encrypted",)}
HIDDEN = {"marks": ("encrypted", "encrypted-names"), "hidden": True}

both("normal", "-s-")
both("stored", "-m0")
both("best", "-m5")
both("solid", "-s")
both("comment", "-z../comment", before="echo Read me first >../comment; ")
both("recovery_record", "-rr10")
both("locked", "-k")
both(
    "links",
    "-ol",
    before="ln -s readme.txt link; touch -h -r readme.txt link; ",
    changes=LINK,
    marks=("links",),
)
both("precise_times", "-tsm+ -tsc+ -tsa+")
both("encrypted", "-psecret", **ENCRYPTED)
both("encrypted_names", "-hpsecret", **HIDDEN)
both("updated", "-s-", after="; touch -d @1720000000 readme.txt; rar u -idq ../a.rar readme.txt")
both("self_extracting", "-sfx../stub.sfx", before=f"{STUB}; ", after="; mv ../a.sfx ../a.rar")
both("volumes", "-v6k", "a.part*.rar", volumes=True)
both("solid_volumes", "-s -v6k", "a.part*.rar", volumes=True)
both("stored_volumes", "-m0 -v6k -rr5", "a.part*.rar", volumes=True)
both("volumes_encrypted", "-psecret -v6k", "a.part*.rar", volumes=True, **ENCRYPTED)
both("volumes_encrypted_names", "-hpsecret -v6k", "a.part*.rar", volumes=True, **HIDDEN)

# Names of that age are given in the older format alone.
tool_sample(
    "rar4_tool_volumes_old_names", "rar4 volumes", "rar6", "rar6 a -idq -r -ma4 -vn -v6k ../a.rar .", "a.r*"
)
tool_sample("rar5_tool_blake2", "rar5", "rar", "rar a -idq -r -htb ../a.rar .", "a.rar")
tool_sample("rar5_tool_quick_open", "rar5", "rar", "rar a -idq -r -qo+ ../a.rar .", "a.rar")

"""Make the kept samples anew: python tests/integration/archives/keep_samples.py [--all] [NAME ...]

Without names it makes those that are not kept yet; a sample that cannot be made here is left as it is and named
with the tool it takes. rar writes the older format up to version 6: such a one is looked for as ``rar6``, too.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import archive_samples as samples
import archive_tools
import click
import kept_samples
import other_archive_tools as other_tools


def about(maker, sample):
    """How a sample came to be, and what every installed program says of it."""
    folder, parts = sample.files[0].parent, [file.name for file in sample.files]
    listings = []
    for label, tool, options in other_tools.installed(maker.format, parts):
        status, output = other_tools.ask(tool, options, folder)
        listings.append(
            {
                "tool": label,
                "version": archive_tools.version(tool),
                "command": " ".join([tool, *options]),
                "status": status,
                "output": output.splitlines(),
            }
        )
    versions = {tool: archive_tools.version(tool) for tool in maker.tools}
    return {"format": maker.format, "made_by": versions, "line": maker.make.line, "listings": listings}


def main(arguments):
    """Keep the samples with these names."""
    made_by_tools = [name for name, maker in samples.MAKERS.items() if maker.tools]
    wanted = [name for name in arguments if not name.startswith("-")]
    if "--all" in arguments:
        wanted = made_by_tools
    elif not wanted:
        wanted = [name for name in made_by_tools if name not in kept_samples.names()]
    for name in wanted:
        maker = samples.MAKERS[name]
        if missing := [tool for tool in maker.tools if archive_tools.program(tool) is None]:
            click.echo(f"{name} is left as it is: {', '.join(missing)} is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            sample = samples.make_anew(name, Path(folder))
            kept_samples.write(name, sample, about(maker, sample))
        size = sum(file.stat().st_size for file in kept_samples.files(name))
        click.echo(f"{name}: {len(sample.files)} files, {size} bytes with what is said of them")


if __name__ == "__main__":
    main(sys.argv[1:])

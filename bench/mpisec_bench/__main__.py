"""python3 -m mpisec_bench pingpong|startup|allgather|… …; `mpisec bench …` runs this."""

import argparse
import json
import sys

from mpisec_bench import collective, pingpong, startup
from mpisec_lab.errors import LabError

_COMMANDS = {"pingpong": pingpong, "startup": startup}


def main():
    parser = argparse.ArgumentParser(prog="mpisec bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    adders = {name: module.add_arguments for name, module in _COMMANDS.items()}
    adders |= {name: collective.adder(name) for name in collective.COLLECTIVES}
    for name, add_arguments in adders.items():
        module = _COMMANDS.get(name, collective)
        command = commands.add_parser(name, help=module.__doc__.splitlines()[0], description=module.__doc__)
        command.add_argument("--json", action="store_true", help="one JSON document instead of a table")
        add_arguments(command)
    arguments = parser.parse_args()
    module = _COMMANDS.get(arguments.command, collective)
    result = module.measure(arguments)
    print(json.dumps(result, indent=1) if arguments.json else module.table(result))


if __name__ == "__main__":
    try:
        main()
    except LabError as error:
        sys.exit(f"mpisec bench: {error}")

"""`python -m pipeflow.cli`: the command where its script is not installed."""

import sys

from pipeflow.cli.entry import main

sys.exit(main())

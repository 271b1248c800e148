import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
sys.path.append(str(Path(__file__).parents[1] / "sandbox"))

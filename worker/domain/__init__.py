"""What the fleet talks about: pure values and pure decisions.

Standard library only, no input or output. Everything above may import it.
"""

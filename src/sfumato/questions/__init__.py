"""All questions of the library. The stub beside this file lists them: a new one is one line there.

The public door, the decoders of plans and releases, the command line, the audit and the benchmarks
read that list. Questions of other packages join it by ``answers.registry``.
"""

from sfumato.basics.lazily import attached

__getattr__, __dir__, __all__ = attached(__name__)

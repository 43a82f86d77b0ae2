"""Stubs of the native module: keep beside python/bindings/*.cpp."""

__version__: str

# bindings/error.cpp
def error_code_name(code: int) -> str: ...
def throw_error(code: int, message: str) -> None: ...

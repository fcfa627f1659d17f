"""Version of the package: that of the library it belongs to."""

__version__ = "2.30.7"

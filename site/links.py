"""Links of pages that lead out of docs/ go to the file in the repository; one that leads nowhere is an error."""
import os
import re

from mkdocs.exceptions import PluginError

REPOSITORY = "https://github.com/gccl/gccl/blob/main/"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, **_):
    folder = os.path.join("docs", os.path.dirname(page.file.src_uri))

    def outside(m):
        path = os.path.normpath(os.path.join(folder, m.group(1)))
        if path.startswith("docs/") or path == "docs":
            return m.group(0)
        if not os.path.exists(os.path.join(ROOT, path)):
            raise PluginError(f"{page.file.src_uri} links to {m.group(1)}, which is not there")
        return f"]({REPOSITORY}{path}{m.group(2) or ''})"

    return LINK.sub(outside, markdown)

"""Tables in Markdown, as docs/results.md has them."""


def head(*names):
    row(*names)
    print("|---" * len(names) + "|", flush=True)


def row(*cells):
    print("|" + "".join(f" {cell} |" for cell in cells), flush=True)

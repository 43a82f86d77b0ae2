"""What npm says when it fails, in one line."""


def error(stderr):
    lines = [line.removeprefix("npm error ").removeprefix("npm ERR! ").strip() for line in stderr.splitlines()]
    lines = [line for line in lines if line.startswith(("code ", "syscall ", "errno ", "404 ", "notarget "))]
    return "; ".join(lines[:3]) or "npm said nothing; is there a network?"

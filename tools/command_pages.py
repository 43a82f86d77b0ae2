#!/usr/bin/python3
"""command_pages.py COMMAND FOLDER [EMULATOR...]: manual pages and bash completion, made from what the command's --help says.

Writes FOLDER/man1/*.1 (one page for the command and one for each of its commands), FOLDER/plimsoll.bash and FOLDER/stamp.
"""
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys

# What the command's own --help has no room for.
EXIT_STATUS = [("0", "success"), ("1", "a failed verdict: an output that differs, a leak, a capacity that is too small"),
               ("2", "wrong usage"),
               ("other", "one for each kind of error. \\fBexec\\fP returns the command's own, 124 at the time limit, "
                         "125 for a failure of ours, 126 and 127 as a shell does, 137 at the memory limit.")]


@dataclasses.dataclass
class Help:
    """What `--help` printed, taken apart. Rows are (left, right) pairs."""
    words: list  # plimsoll lab fork-vs-spawn
    summary: str
    usage: str
    sections: dict
    footer: list

    @property
    def options(self):
        """Each option: its spellings, and the words it may be followed by."""
        for left, _ in self.sections.get("Options", []):
            names, _, kind = left.partition(" ")
            choices = re.search(r"\{(.*)\}", kind)
            yield names.split(","), choices[1].split(",") if choices else [], bool(kind)


def parse(words, text):
    lines = text.splitlines()
    usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    page = Help(words, " ".join(lines[:usage]).strip(), lines[usage].removeprefix("Usage: "), {}, [])
    section = None
    for line in lines[usage + 1:]:
        if re.fullmatch(r"(Options|Positionals|Subcommands):", line):
            section = page.sections.setdefault(line[:-1], [])
        elif not line.startswith("  ") and line.strip():
            section = None
            page.footer.append(line)
        elif section is None:
            page.footer += [line] if page.footer else []
        elif line.startswith(" " * 20):
            section[-1] = (section[-1][0], f"{section[-1][1]} {line.strip()}".strip())
        elif line.strip():
            left, _, right = line.strip().partition("  ")
            section.append((left, right.strip()))
    return page


def read(command, words):
    """The command's page and, below it, those of its commands."""
    text = subprocess.run([*command, *words[1:], "--help"], capture_output=True, text=True, check=True).stdout
    pages = [parse(words, text)]
    for name, _ in pages[0].sections.get("Subcommands", []):
        pages += read(command, [*words, name])
    return pages


def roff(text):
    """Text that means itself: no escapes, no requests, minus signs that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def rows(title, pairs):
    yield f".SH {title}"
    for left, right in pairs:
        yield f".TP\n.B {roff(left)}\n{roff(right) or chr(92) + '&'}"


def man_page(page, version):
    name = "-".join(page.words)
    yield f'.TH {name.upper()} 1 "" "plimsoll {version}" "User Commands"'
    yield f".SH NAME\n{roff(name)} \\- {roff(page.summary.rstrip('.'))}"
    yield f".SH SYNOPSIS\n.B {roff(page.usage)}"
    remarks = [line for line in page.footer if line.strip() and "xample: " not in line and not line.startswith(" ")]
    if remarks:
        yield ".SH DESCRIPTION\n" + "\n.PP\n".join(map(roff, remarks))
    titles = {"Positionals": "ARGUMENTS", "Options": "OPTIONS", "Subcommands": "COMMANDS"}
    for section, pairs in page.sections.items():
        yield from rows(titles[section], pairs)
    examples = [line.partition("Example: ")[2] if line.startswith("Example: ") else line.strip()
                for line in page.footer if line.startswith(("Example: ", "      "))]
    if examples:
        yield ".SH EXAMPLES\n.nf\n" + "\n".join(map(roff, examples)) + "\n.fi"
    if len(page.words) == 1:
        yield ".SH EXIT STATUS"
        yield from (f".TP\n.B {code}\n{meaning}" for code, meaning in EXIT_STATUS)
    others = ["-".join(page.words[:-1])] if len(page.words) > 1 else []
    others += [f"{name}-{word}" for word, _ in page.sections.get("Subcommands", [])]
    yield ".SH SEE ALSO\n" + ",\n".join(f".BR {roff(other)} (1)" for other in others)


def completion(pages):
    """A bash function: commands, then options, then the words an option takes; otherwise files."""
    yield "# Completion of plimsoll for bash; made by tools/command_pages.py from --help."
    yield "_plimsoll() {"
    yield '  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command="" words="" choices="" i'
    yield "  COMPREPLY=()"
    yield "  for ((i = 1; i < COMP_CWORD; ++i)); do"
    yield "    [[ ${COMP_WORDS[i]} != -- ]] || { compopt -o default; return; }"
    yield '    case "$command ${COMP_WORDS[i]}" in'
    for page in pages[1:]:
        yield f"      '{' '.join(['', *page.words[1:]])}') command+=' {page.words[-1]}' ;;"
    yield "    esac"
    yield "  done"
    yield '  case "$command" in'
    for page in pages:
        words = [name for name, _ in page.sections.get("Subcommands", [])]
        words += [name for names, _, _ in page.options for name in names if name.startswith("--")]
        key = "".join(f" {word}" for word in page.words[1:])
        yield f"    '{key}')\n      words='{' '.join(words)}'"
        valued = [(names, choices) for names, choices, takes in page.options if takes]
        if valued:
            yield '      case "$previous" in'
            for names, choices in valued:
                yield f"        {'|'.join(names)}) choices='{' '.join(choices) or '(file)'}' ;;"
            yield "      esac"
        yield "      ;;"
    yield "  esac"
    yield "  if [[ $choices == '(file)' ]]; then compopt -o default; return; fi"
    yield "  if [[ $choices ]]; then words=$choices"
    yield "  elif [[ $current != -* && $command ]] && [[ $words == --* ]]; then compopt -o default; return; fi"
    yield '  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")'
    yield "}"
    yield "complete -F _plimsoll plimsoll"


def main():
    command, folder = [*sys.argv[3:], str(pathlib.Path(sys.argv[1]).resolve())], pathlib.Path(sys.argv[2])
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    pages = read(command, ["plimsoll"])
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "man1").mkdir(parents=True)
    for page in pages:
        (folder / "man1" / f"{'-'.join(page.words)}.1").write_text("\n".join(man_page(page, version)) + "\n")
    (folder / "plimsoll.bash").write_text("\n".join(completion(pages)) + "\n")
    (folder / "stamp").touch()


if __name__ == "__main__":
    main()

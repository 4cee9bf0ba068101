"""The tables of judged findings are what `evidence/README.md` says. That the linter still agrees needs the sources."""

from __future__ import annotations

from evidence import doubt
from evidence.replay import SAMPLED, place, rows
from evidence.table import PAGE, measured, page_with

from torchcopylint.pages import load_pages


def test_every_finding_is_of_a_listed_source_and_rule_and_is_judged_once() -> None:
    findings = rows("findings.tsv")
    assert {row["source"] for row in findings} <= {row["source"] for row in rows("sources.tsv")}
    assert {row["code"] for row in findings} <= set(load_pages())
    assert len({place(row) for row in findings}) == len(findings)


def test_what_is_not_right_says_why() -> None:
    for row in rows("findings.tsv"):
        assert row["verdict"] in ("right", "wrong", "open")
        assert bool(row["note"]) == (row["verdict"] != "right"), row


def test_sources_name_their_commit_or_version() -> None:
    for row in rows("sources.tsv"):
        assert len(row["revision"]) == 40 if row["kind"] == "repository" else row["revision"][0].isdigit(), row
        assert row["held_out"] in ("yes", "no", "first")
        assert row["sampled"] in ("yes", "no", "table")


def test_the_table_of_the_page_is_what_was_measured() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page_with(text) == text, "python -m tests.evidence.table"


def test_what_was_measured_is_of_listed_sources_and_was_read() -> None:
    sources = {row["source"]: row for row in rows("sources.tsv")}
    judged = {(row["source"], row["code"]) for row in rows("findings.tsv")}
    for row in measured():
        assert row.source in sources
        assert row.when in ("first", "now")
        assert row.read <= row.found
        if row.code not in SAMPLED:
            assert row.read == row.found, f"not read: {row}"
        assert not row.read or (row.source, row.code) in judged
    new = {name for name, row in sources.items() if row["sampled"] == "table"}
    assert new <= {row.source for row in measured() if row.when == "first"}


def test_pages_say_which_errors_are_doubtful_and_the_table_shows_why() -> None:
    pages = load_pages()
    counts = doubt.counted(pages)
    said = {key: confidence for page in pages.values() for key, confidence in doubt.said_by(page).items()}
    assert said == doubt.doubtful(counts), "python -m tests.evidence.doubt"
    text = PAGE.read_text(encoding="utf-8")
    assert doubt.page_with(text, counts) == text, "python -m tests.evidence.doubt"

"""The three forms of a report: text, Markdown and LaTeX."""

from analysis.report.document import (
    Bullets,
    Heading,
    Sentences,
    Table,
    as_latex,
    as_markdown,
    as_text,
    escape_latex,
)

BLOCKS = [
    Heading("Title", 1),
    Sentences("A sentence with 95 % and d > 0."),
    Bullets(("first", "second_one")),
    Table("A caption", ("cell", "value"), (("gd_actions", "0.1"), ("b|c", "<0.0001"))),
]


def test_text_sets_words_left_and_numbers_right() -> None:
    lines = as_text(BLOCKS).splitlines()
    assert lines[-4:] == ["A caption", "  cell          value", "  gd_actions      0.1", "  b|c         <0.0001"]
    assert "- second_one" in lines
    assert lines[1:3] == ["Title", "====="]


def test_markdown_has_pipe_tables_in_which_no_word_is_read_as_markup() -> None:
    text = as_markdown(BLOCKS)
    assert "# Title" in text
    assert "| cell | value |\n| :--- | ---: |\n| gd\\_actions | 0.1 |\n| b\\|c | \\<0.0001 |" in text


def test_latex_has_booktabs_rules_and_no_character_that_it_would_read_otherwise() -> None:
    text = as_latex(BLOCKS)
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == text.count(r"\midrule") == 1
    assert r"\begin{longtable}{lr}" in text
    assert r"gd\_actions & 0.1 \\" in text
    assert r"\textless{}0.0001" in text
    assert r"\section{Title}" in text
    assert escape_latex("a_b & 5 % {x} ~^\\$#") == (
        r"a\_b \& 5 \% \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{}\$\#"
    )


def test_nothing_to_say_is_an_empty_line() -> None:
    assert as_text([]) == "\n"

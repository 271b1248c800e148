"""The rules of .dockerignore, by which the build's context is judged."""

import pytest
from dockerignore import is_sent, rules


@pytest.mark.parametrize(
    ("text", "sent", "left_out"),
    [
        ("# a.py\n\n", ["a.py", "b/a.py"], []),
        ("a.py", ["b/a.py", "a.pyc"], ["a.py"]),
        ("*", [], ["a.py", "b/a.py"]),
        ("*.py", ["a.txt", "b/a.py"], ["a.py"]),
        ("/b", ["c/b"], ["b", "b/a.py"]),
        ("b/", ["a.py"], ["b/a.py", "b/c/a.py"]),
        ("**/b", ["a.py", "cb"], ["b", "c/b", "c/d/b", "c/b/a.py"]),
        ("**/*.so", ["a.py"], ["a.so", "b/c/a.so"]),
        ("b/**", ["a.py"], ["b/a.py", "b/c/a.py"]),
        ("b/**/a.py", ["b/c.py"], ["b/a.py", "b/c/d/a.py"]),
        ("?.py", ["ab.py"], ["a.py"]),
        ("[ab].py", ["c.py"], ["a.py", "b.py"]),
        ("[^ab].py", ["a.py"], ["c.py"]),
        (r"\!a", ["a"], ["!a"]),
        ("*\n!a.py", ["a.py"], ["b.py", "b/a.py"]),
        ("*\n!b/", ["b/a.py", "b/c/a.py"], ["a.py"]),
        ("*\n!b/\n**/__pycache__", ["b/a.py"], ["b/__pycache__/a.pyc"]),
        ("!a.py\n*", [], ["a.py"]),
        ("*\n!b\nb/c\n!b/c/d.py", ["b/a.py", "b/c/d.py"], ["b/c/a.py"]),
    ],
)
def test_the_last_rule_that_means_a_file_or_a_folder_above_it_decides(text, sent, left_out):
    known = rules(text)
    assert [path for path in sent if not is_sent(path, known)] == []
    assert [path for path in left_out if is_sent(path, known)] == []

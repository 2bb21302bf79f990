"""The joined page, on a real DVC repository without git."""

import re

import pytest
from report_helpers import Elements, check_anchors, check_headings, plain, rule, verdict

from tasks import stage
from tasks.report.index import write_index

STAGES = """stages:
  label_completion-simulate:
    desc: Draw <simulated> workers.
    matrix: {data: [iris, wine]}
    cmd: "true"
    outs: ["data/${item.data}"]
  label_completion-check-answers:
    matrix: {data: [iris, wine]}
    cmd: "true"
    deps: ["data/${item.data}"]
    outs: ["checks/${item.data}"]
  label_completion:
    cmd: "true"
    deps: [checks/iris, checks/wine, data/iris, data/wine]
    outs: [page]
"""
SECOND = """
  bpr-train:
    cmd: "true"
    outs: [model]
  bpr:
    cmd: "true"
    deps: [model]
    outs: [bpr-page]
"""


@pytest.fixture
def repository(workspace):
    from dvc.repo import Repo

    Repo.init(no_scm=True).close()
    workspace.write("dvc.yaml", "stages: {}\n")
    workspace.write("tasks/stage.py", "")
    (workspace.root / "reports").mkdir()
    return workspace


def index(workspace) -> str:
    out = workspace.root / "reports/index.html"
    write_index(workspace.root / "reports", out=out)
    return out.read_text(encoding="utf-8")


def with_methods(workspace, *names: str) -> None:
    workspace.write("dvc.yaml", STAGES + SECOND)
    for name in names:
        workspace.write(f"tasks/{name}/params.py", "")


def test_no_method(repository):
    repository.write("tasks/label_completion/params.py", "")  # but no stage
    text = plain(index(repository))
    assert "There is no method yet" in text
    assert "label_completion" not in text


def test_one_method(repository):
    with_methods(repository, "label_completion")
    repository.page()
    page = index(repository)
    text = plain(page)
    assert "Label completion Fills missing answers. 2 of 2 page" in text
    assert "bpr" not in text
    assert "simulate ×2 Draw &lt;simulated&gt; workers. –" in text
    assert "<title>label_completion-simulate: Draw &lt;simulated&gt; workers.</title>" in page
    assert page.count('<g class="node gate">') == 1
    assert page.count('<g class="node last">') == 1
    assert page.count("0.812 [0.790, 0.835]") == 2
    assert 'href="label_completion/index.html"' in page


def test_method_without_page(repository):
    with_methods(repository, "label_completion", "bpr")
    repository.page()
    text = plain(index(repository))
    assert text.count("not run yet: make repro METHOD=bpr") == 2  # in the overview and in its section
    assert "METHOD=label_completion" in text
    assert "not run yet: make repro METHOD=label_completion" not in text


def test_two_methods(repository):
    with_methods(repository, "label_completion", "bpr")
    repository.write("params.yaml", "label_completion: {seed: 1}\nbpr: {seed: 2}\n")
    repository.page()
    repository.write("summary.md", '# Bayesian "ranking" <fast>\n\nRanks & learns.\n')
    repository.page("bpr")
    page = index(repository)
    assert "not run yet" not in page
    found = Elements(page).found
    assert [attrs["id"] for tag, attrs in found if tag == "article"] == ["bpr", "label_completion"]
    assert "Bayesian &#34;ranking&#34; &lt;fast&gt; Ranks &amp; learns. 2 of 2" in plain(page)
    assert page.count("<svg ") == 2
    check_headings(page)
    check_anchors(page)
    assert index(repository) == page
    assert str(repository.root) not in page


def test_a_failed_gate_is_seen_in_the_overview(repository):
    with_methods(repository, "label_completion")
    repository.write("checks/wine/answers.json", verdict(rule(success=False)))
    repository.page()
    assert re.search(r'<td><span class="mark failed">1 of 2</span></td>', index(repository))


@pytest.mark.parametrize("content", ["<html></html>", "<!-- method section: begin --><article data-method='bpr'>"])
def test_foreign_page_is_refused(repository, content):
    with_methods(repository, "bpr")
    repository.write("reports/bpr/index.html", content)
    with pytest.raises(stage.UserError, match=r"bpr/index\.html: expected a page written by .*make repro METHOD=bpr"):
        index(repository)


def test_truncated_page_is_refused(repository):
    with_methods(repository, "label_completion")
    page = repository.page()
    repository.write("reports/label_completion/index.html", page[: page.index("</article>")])
    with pytest.raises(stage.UserError, match=r"expected a page written by python -m tasks\.report\.method"):
        index(repository)


def test_page_of_another_method_is_refused(repository):
    with_methods(repository, "bpr")
    repository.page(out="reports/bpr/index.html")
    with pytest.raises(stage.UserError, match="expected the page of bpr, found that of label_completion"):
        index(repository)


def test_broken_dvc_file_is_named(repository):
    repository.write("dvc.yaml", "stages: {a: {}}\n")
    with pytest.raises(stage.UserError, match=r"dvc\.yaml: DVC cannot read the stages"):
        index(repository)


def test_no_dvc_repository(workspace):
    with pytest.raises(stage.UserError, match="DVC cannot read the stages"):
        index(workspace)

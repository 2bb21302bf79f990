"""The page of one method: what it shows, what it escapes, what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from report_helpers import Elements, check_anchors, check_headings, plain, rule, verdict

from tasks import stage

EVIL = "<script>alert(1)</script>"
FETCHING = {
    ("script", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("link", "href"),
    ("iframe", "src"),
    ("object", "data"),
}
FETCHING |= {
    ("source", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("image", "href"),
    ("use", "href"),
    ("embed", "src"),
}


def test_same_bytes_again_and_whatever_the_order_of_listings(workspace, monkeypatch):
    first = workspace.page()
    assert workspace.page() == first
    listing = os.scandir  # pathlib lists folders by scandir or listdir, depending on the Python version

    class Reversed(list):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(os, "scandir", lambda *a: Reversed(sorted(listing(*a), key=lambda e: e.name, reverse=True)))
    names = os.listdir
    monkeypatch.setattr(os, "listdir", lambda *a: sorted(names(*a), reverse=True))
    assert workspace.page() == first


def test_no_path_of_the_machine(workspace):
    assert str(workspace.root) not in workspace.page()


def test_everything_foreign_is_escaped(workspace):
    workspace.write("metrics/iris.json", {EVIL: EVIL})
    hit = rule(EVIL, False, column=EVIL, kwargs={EVIL: EVIL}, unexpected=1, examples=[EVIL, {"x": EVIL}])
    workspace.write("checks/iris/answers.json", verdict(hit, suite=EVIL))
    captions = {name: {"title": EVIL, "caption": f'"{EVIL}'} for name in ("b.png", "a.png")}
    workspace.write("figures/captions.json", captions)
    workspace.write("params.yaml", json.dumps({"label_completion": {EVIL: {EVIL: EVIL}}}))
    workspace.write("summary.md", f'# {EVIL}\n\nHeadline "{EVIL}\n\n{EVIL}\n\n| {EVIL} |\n|--|\n| <b>x</b> |\n')
    page = workspace.page()
    tags = {tag for tag, _ in Elements(page).found}
    assert not tags & {"script", "b"}
    assert page.count("&lt;script&gt;") >= 15
    assert "alert(1)&lt;/script&gt;" in page


def test_nothing_is_fetched(workspace):
    workspace.write(
        "summary.md", "# T\n\nSee [the paper](https://example.org/paper).\n\n<img src='https://example.org/x.png'>\n"
    )
    page = workspace.page()
    fetched = [attrs[key] for tag, attrs in Elements(page).found for t, key in FETCHING if t == tag and key in attrs]
    assert len(fetched) == 3  # two figures and the empty icon
    assert all(address.startswith("data:") for address in fetched)
    assert "@import" not in page
    assert "url(" not in page.replace("url(#", "")
    assert '<a href="https://example.org/paper">' in page
    assert "default-src 'none'" in page


def test_image_in_the_summary_is_refused(workspace):
    workspace.write("summary.md", "# T\n\nOne.\n\n![x](https://example.org/x.png)\n")
    with pytest.raises(stage.UserError, match=r"summary\.md: expected no image.*figures folder"):
        workspace.page()


def test_metrics_with_intervals_in_one_row(workspace):
    page = workspace.page()
    assert page.count(">0.812 [0.790, 0.835]</td>") == 2
    assert "accuracy.low" not in plain(page)
    assert ">150</td>" in page


def test_metric_without_its_whole_interval_keeps_its_rows(workspace):
    workspace.write("metrics/iris.json", {"x": 0.5, "x.low": 0.4})
    text = plain(workspace.page())
    assert "x. low 0.4000" in text
    assert "x 0.5000 –" in text  # and wine has none of it


def test_verdicts(workspace):
    assert "2 of 2 passed" in plain(workspace.page())
    broken = rule("in set", False, kwargs={"value_set": ["0", "1"]}, unexpected=3, examples=["9"])
    workspace.write("checks/wine/answers.json", verdict(rule(), broken))
    page = workspace.page()
    text = plain(page)
    assert "1 of 2 passed" in text
    assert "failed answers on wine 1 of 2 rules, 12 rows" in text
    assert "passed answers on iris 1 of 1 rules, 12 rows" in text
    assert 'in set task value_set = ["0", "1"] failed 3 9' in text.replace("&#34;", '"')
    assert [("open" in attrs) for tag, attrs in Elements(page).found if tag == "details"] == [False, True]


def test_figures_in_the_order_of_the_captions(workspace):
    page = workspace.page()
    images = [attrs for tag, attrs in Elements(page).found if tag == "img"]
    assert [image["alt"] for image in images] == ["Caption b.png", "Caption a.png"]
    assert {(image["width"], image["height"]) for image in images} == {("3", "2")}
    assert "Figure 1. Title b.png." in plain(page)


def test_parameters_of_the_method_only(workspace):
    text = plain(workspace.page())
    assert "all seed 7 complete alpha 0.5 limits.low 1 limits.high 2" in text
    assert "secret" not in text


def test_structure_for_assistive_technology(workspace):
    page = workspace.page()
    check_headings(page)
    check_anchors(page)
    found = Elements(page).found
    assert all("scope" in attrs for tag, attrs in found if tag == "th")
    assert {"main", "header", "nav"} <= {tag for tag, _ in found}


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("metrics/iris.json", "{", r"iris\.json: expected JSON"),
        ("metrics/iris.json", '{"x": NaN}', r"iris\.json: expected JSON: NaN"),
        ("metrics/iris.json", "[1]", r"iris\.json: expected one flat JSON object of metrics, found a list"),
        ("metrics/iris.json", '{"x": {"y": 1}}', r"iris\.json: x: expected a number or a text, found an object"),
        ("checks/iris/answers.json", '{"suite": "a"}', r"answers\.json: verdict\.success: missing; .*tables: missing"),
        ("checks/iris/answers.json", verdict() | {"success": "false"}, r"verdict\.success: 'false' is not allowed"),
        (
            "checks/iris/answers.json",
            verdict(rule(success=False)) | {"success": True},
            r"success is true, but 1 of its",
        ),
        ("figures/captions.json", '{"b.png": {"title": "t"}}', r"captions\.json: captions\.b\.png\.caption: missing"),
        ("figures/captions.json", "{}", r"a\.png: no caption; expected the key 'a\.png'"),
        ("figures/c.png", b"GIF89a", r"c\.png: no caption"),
        ("figures/a.png", b"GIF89a" + bytes(40), r"a\.png: expected a PNG image"),
        ("summary.md", "No title\n", r"summary\.md: expected '# Title'"),
        ("summary.md", "## Low\n\nText.\n", r"summary\.md: expected exactly one '# Title'"),
        ("summary.md", "# A\n\nText.\n\n# B\n", r"summary\.md: expected exactly one '# Title'"),
        ("summary.md", b"# \xff\n\nText.\n", r"summary\.md: .*utf-8"),
        ("params.yaml", "other: {}\n", r"params\.yaml: there is no section label_completion"),
        ("params.yaml", "label_completion: 3\n", r"params\.yaml: label_completion: 3 is not allowed"),
    ],
)
def test_bad_input_is_named(workspace, path, content, message):
    workspace.write(path, content)
    with pytest.raises(stage.UserError, match=message):
        workspace.page()


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("metrics/*.json", r"metrics: expected files <variant>\.json, found none"),
        ("checks/*/*.json", r"checks: expected files <variant>/<suite>\.json, found none"),
        ("figures/captions.json", r"captions\.json: there is no such file"),
        ("figures/a.png", r"captions\.json: a\.png: expected the name of a PNG file"),
    ],
)
def test_missing_input_is_named(workspace, gone, message):
    for file in workspace.root.glob(gone):
        file.unlink()
    with pytest.raises(stage.UserError, match=message):
        workspace.page()


def test_caption_cannot_point_outside_the_folder(workspace):
    captions = json.loads((workspace.root / "figures/captions.json").read_text())
    workspace.write("figures/captions.json", captions | {"../figures/a.png": {"title": "t", "caption": "c"}})
    with pytest.raises(stage.UserError, match="expected the name of a PNG file"):
        workspace.page()


def test_method_must_be_a_name(workspace):
    with pytest.raises(stage.UserError, match="expected the name of a folder"):
        workspace.page("../x", out="page.html")


def test_command_line(workspace):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tasks.report.method", "label_completion", "metrics", "checks", "figures"]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([*command, "summary.md", "--out", "out/a.html"], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert Path("out/a.html").read_text(encoding="utf-8") == workspace.page()
    done = subprocess.run([*command, "none.md", "--out", "out/b.html"], capture_output=True, text=True, env=env)
    assert done.returncode == 1
    assert done.stderr == "error: tasks.report.method: none.md: there is no such input file or folder\n"
    assert [path.name for path in Path("out").iterdir()] == ["a.html"]

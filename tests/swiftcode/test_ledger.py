"""What a run that was killed leaves on disk is found again, and nothing half written is believed."""

from tasks.swiftcode.ledger import Ledger


def test_results_are_found_again_by_another_process(tmp_path):
    Ledger(tmp_path, ["a", 1]).put({"x": [1]}, [1.5, None])
    again = Ledger(tmp_path, ["a", 1])
    assert again.get({"x": [1]}) == [1.5, None]
    assert again.get({"x": [2]}) is None
    assert Ledger(tmp_path, ["a", 2]).get({"x": [1]}) is None


def test_a_line_that_was_cut_off_is_as_if_it_had_not_been(tmp_path):
    first = Ledger(tmp_path, "work")
    first.put("one", 1)
    with first.file.open("ab") as file:
        file.write(b'{"key": "abc", "val')
    second = Ledger(tmp_path, "work")
    assert second.get("one") == 1
    second.put("two", 2)
    third = Ledger(tmp_path, "work")
    assert (third.get("one"), third.get("two")) == (1, 2)


def test_the_last_of_several_results_counts(tmp_path):
    ledger = Ledger(tmp_path, "work")
    ledger.put("one", 1)
    ledger.put("one", 2)
    assert Ledger(tmp_path, "work").get("one") == 2

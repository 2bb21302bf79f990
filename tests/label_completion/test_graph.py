"""Preparation of features, nearest neighbours and reconstruction weights."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from tasks.label_completion.graph import RIDGE, nearest_neighbors, prepare_features, reconstruction_weights
from tasks.stage import UserError
from tests.label_completion import reference


@st.composite
def tables(draw, *, nominal: bool | None = None, least: int = 2):
    """Feature tables on a coarse grid, so that ties and duplicate rows abound; some columns nominal."""
    n_tasks, n_columns = draw(st.integers(least, 14)), draw(st.integers(1, 4))
    cells = st.lists(st.integers(0, 3), min_size=n_columns, max_size=n_columns)
    values = np.array(draw(st.lists(cells, min_size=n_tasks, max_size=n_tasks)), float)
    kinds = st.booleans() if nominal is None else st.just(nominal)
    named = [f"c{d}" for d in range(n_columns) if draw(kinds)]
    table = pd.DataFrame(values, columns=[f"c{d}" for d in range(n_columns)])
    for name in table.columns.difference(named):
        table[name] *= draw(st.sampled_from([1, 0.1, 1 / 3, 1000]))
    return prepare_features(table, named)


class TestNearestNeighbors:
    @given(tables(), st.integers(1, 6))
    def test_equal_brute_force_with_ties_and_duplicates(self, features, k):
        expected = reference.neighbors(features.values, features.nominal, min(k, len(features.values) - 1))
        np.testing.assert_array_equal(nearest_neighbors(features, k), expected)

    @given(tables(nominal=True), st.integers(1, 6))
    def test_nominal_columns_alone(self, features, k):
        expected = reference.neighbors(features.values, features.nominal, min(k, len(features.values) - 1))
        np.testing.assert_array_equal(nearest_neighbors(features, k), expected)

    @pytest.mark.parametrize(("n_tasks", "n_columns"), [(5, 1), (1030, 3), (600, 70)])
    def test_across_the_borders_of_tiles(self, n_tasks, n_columns):
        values = np.random.default_rng(0).integers(0, 50, (n_tasks, n_columns)).astype(float)
        features = prepare_features(pd.DataFrame(values))
        expected = reference.neighbors(features.values, features.nominal, min(5, n_tasks - 1))
        np.testing.assert_array_equal(nearest_neighbors(features, 5), expected)

    @pytest.mark.parametrize("n_columns", [254, 255, 256, 511, 700])
    def test_more_nominal_mismatches_than_a_byte_counts(self, n_columns):
        values = np.random.default_rng(1).integers(0, 256, (40, n_columns)).astype(float)
        values[7] = values[3]
        values[8, : n_columns // 2] = values[3, : n_columns // 2]
        features = prepare_features(pd.DataFrame(values), range(n_columns))
        np.testing.assert_array_equal(
            nearest_neighbors(features, 4), reference.neighbors(features.values, features.nominal, 4)
        )

    @pytest.mark.parametrize("n_values", [256, 257, 300])
    def test_nominal_columns_with_more_values_than_a_byte(self, n_values):
        values = np.column_stack([np.arange(n_values), np.arange(n_values) % 7, np.arange(n_values) // 100])
        features = prepare_features(pd.DataFrame(values.astype(float)), [0, 1, 2])
        np.testing.assert_array_equal(
            nearest_neighbors(features, 5), reference.neighbors(features.values, features.nominal, 5)
        )

    @pytest.mark.parametrize("values", [[-1.0, 5.5, -1.0, 7.25], [300.0, 301.0, 300.0, 0.0]])
    def test_nominal_codes_may_be_any_numbers(self, values):
        features = prepare_features(pd.DataFrame({"n": values}), ["n"])
        assert nearest_neighbors(features, 2)[0].tolist() == [2, 1]

    def test_scaling_of_columns_is_per_column(self):
        table = pd.DataFrame({"large": [0.0, 1000, 100], "small": [0.0, 0.0, 0.9], "unit": [0.0, 0.0, 1.0]})
        assert nearest_neighbors(prepare_features(table), 1)[0, 0] == 1

    def test_duplicates_are_nearest_in_the_order_of_rows(self):
        features = prepare_features(pd.DataFrame({"x": [1.0] * 8 + [2.0]}))
        neighbors = nearest_neighbors(features, 3)
        assert neighbors[5].tolist() == [0, 1, 2]
        assert neighbors[1].tolist() == [0, 2, 3]

    def test_threads_change_no_bit(self):
        features = prepare_features(pd.DataFrame(np.random.default_rng(2).normal(size=(700, 6))))
        one, three = (nearest_neighbors(features, 5, threads=t) for t in (1, 3))
        np.testing.assert_array_equal(one, three)
        weights = [reconstruction_weights(features, one, threads=t) for t in (1, 3)]
        np.testing.assert_array_equal(*weights)


def _objective(values: np.ndarray, i: int, near: np.ndarray) -> np.ndarray:
    """The ridged, scaled matrix of the quadratic form that the weights of task i minimise."""
    gaps = values[i] - values[near]
    gram = gaps @ gaps.T
    scale = np.trace(gram) / len(near)
    return gram / scale + RIDGE * np.eye(len(near)) if scale > 0 else np.eye(len(near))


def _over_supports(matrix: np.ndarray) -> np.ndarray:
    """argmin w'Aw on the simplex: the best feasible one of the solutions on every support."""
    best, value = None, np.inf
    k = len(matrix)
    for size in range(1, k + 1):
        for support in map(list, combinations(range(k), size)):
            solution = np.linalg.solve(matrix[np.ix_(support, support)], np.ones(size))
            solution /= solution.sum()
            if (solution < -1e-9).any():
                continue
            w = np.zeros(k)
            w[support] = np.clip(solution, 0, None) / np.clip(solution, 0, None).sum()
            if w @ matrix @ w < value - 1e-15:
                best, value = w, w @ matrix @ w
    return best


class TestReconstructionWeights:
    @given(tables(least=4), st.integers(1, 5))
    def test_on_the_simplex_and_optimal(self, features, k):
        """Karush–Kuhn–Tucker: the gradient is one number where w > 0, and nowhere smaller."""
        neighbors = nearest_neighbors(features, k)
        weights = reconstruction_weights(features, neighbors)
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
        for i, (near, w) in enumerate(zip(neighbors, weights, strict=True)):
            gradient = _objective(features.values, i, near) @ w
            assert (gradient >= gradient @ w - 1e-9).all()
            np.testing.assert_allclose(gradient[w > 1e-9], gradient @ w, atol=1e-9)

    @pytest.mark.parametrize("n_columns", [1, 2, 3, 8, 9])
    def test_equal_the_best_support(self, n_columns):
        """Few columns make singular problems, many make regular ones; sums of four columns at a time have a rest."""
        values = np.random.default_rng(n_columns).normal(size=(40, n_columns)) * 10.0 ** np.arange(n_columns)
        features = prepare_features(pd.DataFrame(values))
        neighbors = nearest_neighbors(features, 5)
        weights = reconstruction_weights(features, neighbors)
        for i, near in enumerate(neighbors):
            np.testing.assert_allclose(weights[i], _over_supports(_objective(values, i, near)), atol=1e-6)

    def test_equal_a_general_optimiser(self):
        values = np.random.default_rng(4).normal(size=(15, 4))
        features = prepare_features(pd.DataFrame(values))
        neighbors = nearest_neighbors(features, 4)
        for i, (near, w) in enumerate(zip(neighbors, reconstruction_weights(features, neighbors), strict=True)):
            matrix = _objective(values, i, near)
            found = minimize(
                lambda v, matrix=matrix: v @ matrix @ v,
                np.full(4, 0.25),
                jac=lambda v, matrix=matrix: 2 * matrix @ v,
                method="SLSQP",
                bounds=[(0, 1)] * 4,
                constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
                options={"ftol": 1e-14, "maxiter": 500},
            )
            assert w @ matrix @ w <= found.fun + 1e-9
            np.testing.assert_allclose(w, found.x, atol=1e-4)

    def test_equal_rows_share(self):
        features = prepare_features(pd.DataFrame({"x": [1.0] * 5}))
        assert (reconstruction_weights(features, nearest_neighbors(features, 4)) == 0.25).all()

    @pytest.mark.parametrize("scale", [1e-160, 1e-6, 1e6, 1e139])
    def test_the_unit_of_all_columns_does_not_matter(self, scale):
        values = np.random.default_rng(5).normal(size=(20, 3))
        plain, scaled = (prepare_features(pd.DataFrame(v)) for v in (values, values * scale))
        near = nearest_neighbors(plain, 5)
        np.testing.assert_array_equal(near, nearest_neighbors(scaled, 5))
        found = reconstruction_weights(scaled, near)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        if scale > 1e-150:  # below, all products are 0 and the neighbours share
            np.testing.assert_allclose(found, reconstruction_weights(plain, near), atol=1e-6)

    @given(tables(least=9), st.integers(7, 8))
    def test_more_neighbours_than_enumeration_would_bear(self, features, k):
        neighbors = nearest_neighbors(features, k)
        weights = reconstruction_weights(features, neighbors)
        for i, (near, w) in enumerate(zip(neighbors, weights, strict=True)):
            gradient = _objective(features.values, i, near) @ w
            assert (gradient >= gradient @ w - 1e-9).all()


class TestPrepareFeatures:
    def test_means_modes_and_columns_without_values(self):
        table = pd.DataFrame(
            {
                "number": [1.0, np.nan, 3.0, 8.0],
                "code": [2.0, 5.0, np.nan, 5.0],
                "tied": [4.0, 1.0, np.nan, np.nan],
                "empty": [np.nan] * 4,
                "text": ["b", None, "a", "b"],
                "category": pd.Categorical([None, "x", "y", "x"], categories=["z", "y", "x"]),
            }
        )
        nominal = ["code", "tied", "text", "category"]
        values = prepare_features(table, nominal).values
        np.testing.assert_array_equal(values[:, 0], [1, 4, 3, 8])
        np.testing.assert_array_equal(values[:, 1], [2, 5, 5, 5])
        np.testing.assert_array_equal(values[:, 2], [4, 1, 1, 1])
        np.testing.assert_array_equal(values[:, 3], [0, 0, 0, 0])
        np.testing.assert_array_equal(values[:, 4], [1, 1, 0, 1])
        np.testing.assert_array_equal(values[:, 5], [2, 2, 1, 2])

    @pytest.mark.parametrize(
        "kind", ["Int64", "Float64", "int16", "bool", "boolean", "double[pyarrow]", "int64[pyarrow]"]
    )
    def test_numbers_of_any_kind(self, kind):
        table = pd.DataFrame({"x": [0, 1, 1, 0]}).astype(kind)
        assert prepare_features(table).values[:, 0].tolist() == [0, 1, 1, 0]

    @pytest.mark.parametrize("kind", ["Int64", "Float64", "double[pyarrow]"])
    def test_gaps_of_nullable_columns(self, kind):
        table = pd.DataFrame({"x": pd.array([0, 4, None], dtype=kind)})
        assert prepare_features(table).values[:, 0].tolist() == [0, 4, 2]

    def test_the_given_table_stays_as_it_is(self):
        table = pd.DataFrame({"x": [1.0, np.nan], "n": [np.nan, 2.0]})
        before = table.copy()
        prepare_features(table, ["n"])
        pd.testing.assert_frame_equal(table, before)

    @pytest.mark.parametrize(
        ("table", "nominal", "message"),
        [
            (pd.DataFrame(), [], "the table has 0 rows and 0 columns; both must be at least 1"),
            (pd.DataFrame(index=["a"]), [], "the table has 1 rows and 0 columns"),
            (pd.DataFrame({"x": []}), [], "the table has 0 rows and 1 columns"),
            (pd.DataFrame({"x": [1, 2]}, index=["a", "a"]), [], "task 'a' appears more than once"),
            (pd.DataFrame({"x": [1, 2]}, index=["a", None]), [], "row 1: the task is missing"),
            (pd.DataFrame({"x": ["1", "2"]}), [], "column 'x' has values of type str; only numbers are allowed"),
            (pd.DataFrame({"x": [1j, 2]}), [], "column 'x' has values of type complex128; only numbers"),
            (pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}), [], r"column 'x' has values of type datetime64"),
            (pd.DataFrame({"x": [1]}), ["y"], "nominal column 'y' does not exist"),
            (pd.DataFrame({"x": [1, -np.inf]}), [], "column 'x', row 1: -inf is not a finite number"),
            (pd.DataFrame({"x": [1, np.inf]}), ["x"], "column 'x', row 1: inf is not a finite number"),
            (pd.DataFrame({"x": [1, 1e150]}), [], r"column 'x', row 1: 1e\+150 is too large: up to ±1e\+140"),
        ],
    )
    def test_unusable_tables(self, table, nominal, message):
        with pytest.raises(UserError, match=f"features: {message}") as error:
            prepare_features(table, nominal)
        assert "\n" not in str(error.value)

"""Derived seeds are the same everywhere, and differ wherever the path differs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pipeflow.rl.seeding import derive_seed, generator_state, restore_generator


def test_a_seed_is_the_same_in_every_process_and_release() -> None:
    # Written down once. If these change, every recorded run becomes irreproducible.
    assert derive_seed(0) == 5573743126012254648
    assert derive_seed(7, "worker", 3, "environment", 0) == 4741752765609679394


def test_different_paths_give_different_seeds() -> None:
    paths: list[tuple[int | str, ...]] = [
        (),
        ("a",),
        ("b",),
        (0,),
        ("0",),
        (1, 2),
        (12,),
        (2, 1),
        ("1", 2),
        ("ab",),
        ("a", "b"),
        (-1,),
        (2**40,),
    ]
    seeds = [derive_seed(seed, *path) for seed in (0, 1) for path in paths]
    assert len(set(seeds)) == len(seeds)


def test_neighbouring_seeds_and_workers_share_no_stream() -> None:
    streams = {
        tuple(np.random.default_rng(derive_seed(seed, "worker", index)).integers(0, 2**62, size=2))
        for seed, index in itertools.product(range(20), range(20))
    }
    assert len(streams) == 400


def test_seeds_fit_numpy_and_torch_generators() -> None:
    assert all(0 <= derive_seed(0, index) < 2**63 for index in range(200))


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        derive_seed(-1)


def test_a_path_of_anything_but_integers_and_strings_is_refused() -> None:
    with pytest.raises(TypeError):
        derive_seed(0, 1.5)  # type: ignore[arg-type]  # what an unchecked caller may pass


def test_a_generator_draws_on_from_where_another_one_stood() -> None:
    one, other = np.random.default_rng(1), np.random.default_rng(2)
    one.integers(9, size=3, dtype=np.int32)  # which leaves half a word
    restore_generator(other, generator_state(one))
    assert other.bit_generator.state == one.bit_generator.state
    assert (
        other.integers(9, size=9, dtype=np.int32).tolist() == one.integers(9, size=9, dtype=np.int32).tolist()
    )


def test_only_default_generators_have_a_state_here() -> None:
    with pytest.raises(ValueError, match="the state of MT19937 is not known here"):
        generator_state(np.random.Generator(np.random.MT19937(0)))

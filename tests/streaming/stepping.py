"""Runs a query over records step by step."""

from __future__ import annotations


def kept(record, clip):  # type: ignore[no-untyped-def]
    return record


def run(query, values, records=1):  # type: ignore[no-untyped-def]
    state = query.initial_global_state()
    found = []
    params = query.derive_sample_params(state)
    for value in values:
        sums = query.initial_sample_state(value)
        for _ in range(records):
            sums = query.accumulate_record(params, sums, value)
        result, state, _ = query.get_noised_result(sums, state)
        found.append(result)
    return found

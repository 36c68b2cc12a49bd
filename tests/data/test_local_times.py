"""Instants on local clocks, beside Python's own zones."""

from __future__ import annotations

import datetime as dt
import random
import struct
import zoneinfo
from collections.abc import Iterator
from importlib.resources import files
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.dates import FIRST_DAY, LAST_DAY, _offset_of_day, local
from sfumato.domain.times import MICROSECONDS_A_DAY

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ZONES = (
    "Europe/Berlin",
    "Europe/Amsterdam",  # ahead of UTC by 19 minutes and 32 seconds until 1937
    "America/New_York",
    "America/St_Johns",
    "Africa/Casablanca",  # clocks change with the month of fasting
    "Africa/Monrovia",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",  # clocks change by half an hour
    "Pacific/Apia",  # left out a day
    "Antarctica/Troll",
    "UTC",
)


def plain(instant: int, zone: str) -> int:
    """What Python says, in microseconds."""
    then = EPOCH + dt.timedelta(microseconds=instant)
    offset = then.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return instant + offset // dt.timedelta(microseconds=1)


@pytest.mark.parametrize("zone", ZONES)
def test_instants_of_three_centuries_are_those_of_python(zone: str) -> None:
    draw = random.Random(zone)
    instants = [draw.randint(-5 * 10**15, 4 * 10**15) for _ in range(300)]
    found = local(np.array(instants), zone)
    assert found.tolist() == [plain(each, zone) for each in instants]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe"])
def test_every_second_around_a_change_of_clocks(zone: str) -> None:
    changes = {"Europe/Berlin": 1_711_846_800, "Australia/Lord_Howe": 1_712_415_600}
    seconds = [changes[zone] + shift for shift in range(-5, 5)]
    instants = np.array([second * 10**6 + part for second in seconds for part in (0, 999_999)])
    found = local(instants, zone)
    assert found.tolist() == [plain(each, zone) for each in instants.tolist()]
    assert len(set((found - instants).tolist())) == 2


def test_without_a_zone_nothing_changes_and_nothing_is_nothing() -> None:
    instants = np.array([0, 1])
    assert local(instants, None) is instants
    assert local(np.zeros(0, np.int64), "Europe/Berlin").tolist() == []


@pytest.mark.parametrize("day", [FIRST_DAY - 1, FIRST_DAY, LAST_DAY, LAST_DAY + 1])
def test_the_first_and_the_last_days_of_the_calendar(day: int) -> None:
    """Python's times end with the year 9999, and a zone must not lead beyond."""
    (found,) = local(np.array([day * MICROSECONDS_A_DAY]), "Pacific/Auckland")
    assert abs(found - day * MICROSECONDS_A_DAY) < MICROSECONDS_A_DAY


def changes(zone: str) -> list[int]:
    """The seconds at which a zone changes its clocks, from its file (RFC 9636)."""
    data = files("tzdata.zoneinfo").joinpath(zone).read_bytes()
    layout = struct.Struct(">4sc15x6l")
    _, _, isut, isstd, leap, times, types, chars = layout.unpack_from(data)
    at = layout.size + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    _, _, _, _, _, times, *_ = layout.unpack_from(data, at)
    return list(struct.unpack_from(f">{times}q", data, at + layout.size))


def test_no_zone_changes_its_clocks_twice_in_a_day() -> None:
    """So an offset that holds at both ends of a day holds all day."""
    total = 0
    for zone in available_timezones() - {"Factory", "localtime"}:
        days = [second // 86_400 for second in changes(zone)]
        assert len(set(days)) == len(days), zone
        total += len(days)
    assert total > 20_000


@pytest.fixture
def without_system_zones() -> Iterator[None]:
    """As on Windows and in small containers: the zones of the package ``tzdata`` alone."""
    zoneinfo.reset_tzpath(to=())
    ZoneInfo.clear_cache()
    _offset_of_day.cache_clear()
    try:
        yield
    finally:
        zoneinfo.reset_tzpath()
        ZoneInfo.clear_cache()
        _offset_of_day.cache_clear()


@pytest.mark.usefixtures("without_system_zones")
def test_zones_are_found_where_the_system_has_none() -> None:
    summer = np.array([1_719_792_000_000_000, 3_297_715_200_000_000])  # July of 2024 and of 2074
    assert (local(summer, "Europe/Berlin") - summer).tolist() == [7_200_000_000] * 2
    with pytest.raises(sf.UsageError, match="did you mean 'Europe/Berlin'"):
        sf.Weekday("when", timezone="Berlin")

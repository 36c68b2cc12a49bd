"""Words are never handed out twice: not to two threads, not to two processes, not across keys."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from sfumato.errors import InternalError
from sfumato.random import bits as module
from sfumato.random.bits import Keystream, PublicSeed, current, override
from support.workers import HANG


def child_words(send, stream, count):
    send.send(stream.words(count).tobytes())
    send.close()


def in_forked_child(stream, count):
    # The parent of this test may have threads of libraries; the child only draws words and leaves.
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(int(HANG))  # a child that waits for ever ends, and the test fails
        os.write(write, stream.words(count).tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return np.frombuffer(answer, dtype=np.uint64)


@pytest.mark.parametrize("count", [0, 1, 64, 65, 511, 512, 513, 2**15 + 1, 2**18])
def test_words_are_fresh_writable_and_distinct(count):
    stream = Keystream()
    first, second = stream.words(count), stream.words(count)
    assert first.shape == second.shape == (count,)
    assert first.dtype == np.uint64
    assert first.flags.writeable
    assert np.unique(np.concatenate([first, second])).size == 2 * count


@pytest.mark.parametrize("sizes", [[1] * 600, [3, 64, 65, 64] * 9, [512, 4, 2**16 + 5, 4]])
def test_words_are_those_of_aes_under_keys_used_once(monkeypatch, sizes):
    """Every word, and so every byte, is the cipher's; none is handed out twice."""
    keys = [bytes([number]) * 32 for number in range(256)]
    drawn = iter(keys)
    system = SimpleNamespace(urandom=lambda size: next(drawn), getpid=os.getpid)
    monkeypatch.setattr(module, "os", system)
    monkeypatch.setattr(module, "KEY_BYTES", 5000)
    zeros = bytes(5000)
    stream = b"".join(Cipher(AES256(key), CTR(bytes(16))).encryptor().update(zeros) for key in keys)
    source, pool, at, start = Keystream(), b"", 0, 0
    for size in sizes:
        given = source.words(size).tobytes()
        if size > 64:
            assert given == stream[at : at + 8 * size]
            at += 8 * size
            continue
        # Small numbers come from a pool of 4096 bytes; too short a rest of it is thrown away.
        if start + 8 * size > len(pool):
            pool, at, start = stream[at : at + 4096], at + 4096, 0
        assert given == pool[start : start + 8 * size]
        start += 8 * size
    assert not source._pool[: start // 8].any()


def test_every_bit_of_a_word_is_fair():
    words = Keystream().words(2**18)
    ones = np.array(
        [(words >> np.uint64(place) & np.uint64(1)).sum() for place in range(64)], dtype=float
    )
    # 8 standard deviations: a false alarm about once in 10**13.
    assert np.abs(ones - 2**17).max() < 8 * np.sqrt(2**18) / 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("count", [32, 4000])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.system_entropy
def test_forked_processes_never_share_a_stream(count):
    stream = Keystream()
    stream.words(1)
    drawn = [in_forked_child(stream, count) for _ in range(3)]
    drawn += [stream.words(count)]
    assert np.unique(np.concatenate(drawn)).size == 4 * count


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.system_entropy
def test_a_pool_of_worker_processes_shares_nothing():
    context = multiprocessing.get_context("fork")
    stream = current()
    stream.words(1)
    answers = []
    for _ in range(3):
        receive, send = context.Pipe(duplex=False)
        worker = context.Process(target=child_words, args=(send, stream, 64))
        worker.start()
        answers.append(np.frombuffer(receive.recv(), dtype=np.uint64))
        worker.join()
    assert np.unique(np.concatenate([*answers, stream.words(64)])).size == 256


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.system_entropy
def test_without_the_fork_handler_the_process_number_is_enough(monkeypatch):
    stream = Keystream()
    stream.words(1)
    monkeypatch.setattr(Keystream, "_forget", lambda self: None)
    child = in_forked_child(stream, 32)
    assert np.unique(np.concatenate([child, stream.words(32)])).size == 64


def test_a_fork_while_the_lock_is_held_does_not_hang_the_child():
    stream = Keystream()
    stream.words(1)
    with stream._lock:
        stream._forget()
        assert stream.words(1).size == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_a_lock_that_the_parent_held():
    stream = Keystream()
    stream.words(1)
    with stream._lock:
        child = in_forked_child(stream, 32)
    assert np.unique(np.concatenate([child, stream.words(32)])).size == 64


def test_threads_never_share_words():
    stream = Keystream()
    drawn: list[np.ndarray] = []

    def work():
        drawn.extend(stream.words(size) for size in [1, 3, 64, 65, 300] * 40)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = np.concatenate(drawn)
    assert np.unique(every).size == every.size == 8 * 40 * 433


def test_a_new_key_after_the_byte_limit(monkeypatch):
    assert module.KEY_BYTES == 2**30
    keys = []
    cipher = module.keystream_cipher
    monkeypatch.setattr(module, "keystream_cipher", lambda key: keys.append(key) or cipher(key))
    monkeypatch.setattr(module, "KEY_BYTES", 4096)
    stream = Keystream()
    drawn = [stream.words(200) for _ in range(20)] + [stream.words(3000)]
    used = 20 * 1600 + 24000
    assert len(keys) == len(set(keys)) == -(-used // 4096)
    every = np.concatenate(drawn)
    assert np.unique(every).size == every.size


def test_the_pool_is_wiped_as_it_is_spent():
    stream = Keystream()
    stream.words(10)
    assert not stream._pool[:10].any()
    assert stream._pool[10:].any()


@pytest.mark.parametrize("step", ["copy", "fill"])
def test_an_interrupt_never_leaves_wiped_or_used_words_next_in_line(step):
    class Interrupting(np.ndarray):
        """A pool during whose ``step`` the user presses Ctrl-C: Python raises after the call."""

    def interrupted(self, *arguments):
        getattr(np.ndarray, step)(self, *arguments)
        raise KeyboardInterrupt

    setattr(Interrupting, step, interrupted)
    stream = Keystream()
    first = stream.words(3)
    whole, stream._pool = stream._pool, stream._pool.view(Interrupting)
    with pytest.raises(KeyboardInterrupt):
        stream.words(5)
    stream._pool = whole
    every = np.concatenate([first, *(stream.words(5) for _ in range(200))])
    assert every.all()
    assert np.unique(every).size == every.size


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_keystream_refuses_a_twin(twin):
    with pytest.raises(TypeError, match="two copies would hand out the same words"):
        twin(Keystream())


def test_an_override_is_nested_restored_and_unseen_by_other_threads():
    private = current()
    assert private.private
    seen = []
    with override(PublicSeed(1)) as outer:
        assert current() is outer
        with override(PublicSeed(2)) as inner:
            assert current() is inner
        assert current() is outer
        thread = threading.Thread(target=lambda: seen.append(current()))
        thread.start()
        thread.join()
    assert current() is private
    assert seen == [private]


def test_a_negative_number_of_words_is_refused():
    stream = Keystream()
    stream.words(3)
    with pytest.raises(InternalError):
        stream.words(-1)

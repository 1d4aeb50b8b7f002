"""What was mended, taken out again on purpose: each with the tests that must notice it.

``python -m tests.mutants`` puts these in, one at a time, beside its other faults. The number is
that of the point in the list of attacks that the mend belongs to.
"""

from __future__ import annotations

OUTPUTS = "tests/cli/test_outputs.py tests/cli/test_outputs_beside.py tests/data/test_files.py"
DAMAGED = "tests/training/test_damaged_state.py"
FEATURES = "tests/inputs/test_damaged_features.py"
REVIEW = "tests/audit/review"
BOMBS = "tests/data/test_bombs.py"
ANSWERS = "tests/audit/decisions/test_answer_faults.py"

MENDS = (
    # 1. Commands write over their own input.
    ("data/files.py", "if identity in read:", "if path in read.values():", OUTPUTS),
    ("data/files.py", "and not force and path.is_file()", "and False", OUTPUTS),
    (
        "cli/outputs.py",
        "check_outputs([*outputs, *beside]",
        "check_outputs([*outputs]",
        OUTPUTS,
    ),
    ("cli/outputs.py", "isinstance(one, Path | str)", "isinstance(one, Path)", OUTPUTS),
    (
        "cli/outputs.py",
        "if not labels and out.suffix.lower() not in IMAGE_ENDINGS:",
        "if not labels:",
        OUTPUTS,
    ),
    # 2. Tabs and reviewers of the page without a server.
    (
        "audit/review/page/file_client.js",
        '${prefix}:${crypto.getRandomValues(new Uint32Array(2)).join("-")}',
        "${prefix}",
        f"{REVIEW}/test_static_tabs.py",
    ),
    (
        "audit/review/page/file_client.js",
        ".filter((one) => one.reviewer === reviewer)",
        "",
        f"{REVIEW}/test_static_tabs.py",
    ),
    # 3. Runs that diverge.
    (
        "training/learner.py",
        "if not math.isfinite(value):",
        "if False:",
        "tests/training/test_divergence.py",
    ),
    (
        "training/task.py",
        "if not bool(probs.isfinite().all()):",
        "if False:",
        "tests/training/test_divergence.py",
    ),
    # 4. States made up, damaged or not finite.
    ("training/checkpoint.py", "value.shape not in fits or", "", DAMAGED),
    ("training/checkpoint.py", "checksum != _checksum(tensors, note)", "False", DAMAGED),
    (
        "training/checkpoint.py",
        "and not bool(tensor.isfinite().all())",
        "and False",
        DAMAGED,
    ),
    # 5. Features and scores.
    ("inputs/features.py", "np.flatnonzero(lengths != lengths[0])", "np.zeros(0)", FEATURES),
    ("data/array_files.py", "if size > free:", "if False:", FEATURES),
    (
        "data/content.py",
        "check_memory(path, _COPIES * size)",
        "pass",
        "tests/data/test_content.py",
    ),
    # 6. Who gets in.
    (
        "audit/review/security.py",
        "if refusal is None and not brought and session is None:",
        "if False:",
        f"{REVIEW}/test_sessions.py",
    ),
    (
        "audit/review/security.py",
        "if self._owner[name] != session:",
        "if False:",
        f"{REVIEW}/test_sessions.py",
    ),
    (
        "audit/review/security.py",
        "if self.conn.their_state is h11.IDLE:",
        "if False:",
        f"{REVIEW}/test_header_timeout.py",
    ),
    (
        "audit/review/security.py",
        "elif self.waiting is None:",
        "elif False:",
        f"{REVIEW}/test_header_timeout.py",
    ),
    # 7. Images beside answers.
    (
        "inputs/image_files.py",
        "os.O_RDONLY | os.O_NONBLOCK | ",
        "os.O_RDONLY | ",
        f"{REVIEW}/test_images.py",
    ),
    ("inputs/decode.py", "and not _is_bomb(content)", "", "tests/inputs/test_decode.py"),
    ("data/array_files.py", "if chunk.has_dictionary_page:", "if False:", BOMBS),
    ("data/array_files.py", "max(1, dtype.itemsize)", "dtype.itemsize", BOMBS),
    (
        "audit/review/thumbnails.py",
        "Image.open(file, formats=FORMATS)",
        "Image.open(file)",
        f"{REVIEW}/test_images.py",
    ),
    (
        "audit/review/thumbnails.py",
        "self._used + own <= self._most",
        "True",
        f"{REVIEW}/test_images.py",
    ),
    # 8. Files that are there completely or not at all.
    (
        "data/files.py",
        'temporary = scratch / f"new{target.suffix}"',
        "temporary = target",
        "tests/data/test_files.py",
    ),
    # 9. Answers and runs.
    (
        "audit/decisions/incoming.py",
        "audit not in (folder.created, *folder.earlier)",
        "False",
        ANSWERS,
    ),
    (
        "audit/decisions/store.py",
        "if _identity(self.path) != self._identity:",
        "if False:",
        ANSWERS,
    ),
    ("audit/decisions/store.py", "!= [row[at] for at in _SAME]", "is None", ANSWERS),
    ("audit/decisions/store.py", "if self._connection.in_transaction:", "if True:", ANSWERS),
    ("data/small_files.py", '_FORMULA = ("=", ', "_FORMULA = (", ANSWERS),
    (
        "training/run_folder.py",
        "with holding_alone(self.path, busy):",
        "with suppress():",
        "tests/training/test_faulty_runs.py",
    ),
    (
        "training/run_folder.py",
        "for path in self.files:",
        "for path in ():",
        "tests/training/test_faulty_runs.py",
    ),
    # 12. What a gradient scaler remembers.
    ("training/checkpoint.py", 'other.load_state_dict(note["others"][name])', "pass", DAMAGED),
    # Folders that one command works in, and what belongs together in them.
    (
        "inputs/shards.py",
        "with holding_alone(self.parts, busy):",
        "with contextlib.nullcontext():",
        "tests/inputs/test_shards.py",
    ),
    (
        "inputs/backbone.py",
        "if backbone.digest not in (None, known.digest):",
        "if False:",
        "tests/inputs/test_shards.py",
    ),
    (
        "audit/run.py",
        "folder.unfinished.touch()",
        "pass",
        "tests/audit/test_stopped_audit.py",
    ),
    (
        "audit/review/queues.py",
        "{last + 1:03}",
        "{len(folder.plans) + 1:03}",
        f"{REVIEW}/test_planned.py",
    ),
    (
        "data/scores.py",
        "_remove_other_names(_names_path(target), names)",
        "pass",
        "tests/data/test_files.py",
    ),
    (
        "cli/start.py",
        "if tags.exists() and not notes.wrote(tags):",
        "if False:",
        "tests/test_start.py",
    ),
    ("inputs/images.py", ", usable_cores())", ")", "tests/inputs/test_images.py"),
    (
        "training/learner.py",
        "if warmup * total == 1:",
        "if False:",
        "tests/training/test_optim.py",
    ),
)
"""File, text, what it becomes, and tests, as in :class:`tests.mutants.Mutant`."""

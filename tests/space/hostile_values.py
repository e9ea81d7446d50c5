"""Texts, values, columns and file names that mean harm: the tables that `hostile_files` draws from."""

TEXTS = (
    "", " ", "null", "true", "\ttrue", "TRUE\u200b", "tru\u0435", "\u0430er-c", "ﬀ", "𝐭𝐫𝐮𝐞",
    "日本語" * 50, "\U0001f600" * 90, "\u0300" * 300, "\u05d0\u05d1", "x" * 250_000,
    '=HYPERLINK("http://evil.example")', "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0", ";=1+1",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "' onmouseover='alert(1)",
    "[x](javascript:alert(1))", "</code></dd><iframe src=//evil.example>", "{{7*7}}${7*7}<%= 7*7 %>",
    "%s%n%x", "{0.__class__}", "'; DROP TABLE judges; --", "../../x",
    "webarena/GenericAgent-gpt-4o-2024-11-20/../../etc/passwd",
    "\x00", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "\u2066x\u2069", "a\u200bb", "\ufeff", "\u2028",
    "1" * 399 + "x", "9" * 4_000, "1e999", "-0", "0x1", "1_000", "٣", "NaN", "Infinity", "1,5", "1;5",
    "two\nlines", "a\r\nb", '"', '""', "'", "\\",
)  # fmt: skip
"""As cells of CSV, as strings of JSON, as ids and as names."""

LITERALS = (
    "NaN", "-Infinity", "Infinity", "1e999", "-1e-999", "9" * 5_000, "1" * 400, "-" * 50, "1.0", "01", "+1",
    ".5", "1" + "0" * 400, "1" * 310 + ".5", "0" * 300_000, "null", "true", "True", "undefined", "", "//x",
    "[]", "{}", "[" * 2_000 + "]" * 2_000, '{"a":' * 3_000 + "1" + "}" * 3_000, "[" * 100_000,
    '{"success": true}', '[{"__proto__": 1}]', '{"a":1,"a":2}',
    '"\\ud800"', '"\\u0000"', '"\\u202e"', '"\\x00"', '"', '"a',
)  # fmt: skip
"""In the place of a value of JSON, as they stand."""

COLUMNS = (
    "trajectory_id", "success", "side_effect", "repetition", "looping", "optimality", "score", "state",
    "reasoning", "cost_usd", "input_tokens", "output_tokens", "latency_s",
    "Success", " success ", "__proto__", "",
)  # fmt: skip

NAMES = (
    "verdicts.jsonl", "verdicts.csv", "verdicts.parquet", "", ".", "..", "../../../etc/passwd",
    "..\\..\\boot.ini", "C:\\verdicts.csv", "/etc/passwd", "a/b/c.jsonl", "CON", "x.jsonl.exe", "~root",
    "-rf", "\u202elnosj.exe", "a\u200bb.jsonl", "<img src=x onerror=alert(1)>.jsonl", "=1+1.csv", "%2e%2e%2f",
    "x" * 300 + ".jsonl", "日本.jsonl",
)  # fmt: skip

//! Byte-level properties of JSON and terse output (COMPAT's C1, C5, C6, C7, C15).
//!
//! Invariant: checks are of text, not of parsed values: a parser would hide what grep sees.

use crate::verdict::Verdict;

/// Keys whose values always have six decimals.
const DECIMALS: &[&str] =
    &["iops", "iops_mean", "bw_mean", "mean", "stddev", "usr_cpu", "sys_cpu", "job_runtime_pct"];

/// Keys whose values never have decimals.
const INTEGERS: &[&str] = &[
    "bw",
    "bw_bytes",
    "io_bytes",
    "io_kbytes",
    "total_ios",
    "runtime",
    "bw_min",
    "bw_max",
    "iops_min",
    "iops_max",
    "bw_samples",
    "iops_samples",
    "ctx",
    "majf",
    "minf",
    "latency_depth",
    "latency_target",
    "latency_window",
];

/// C1, C6, C7: `"key" : value`, indented by two, numbers in their form.
pub fn json_text(text: &str) -> Verdict {
    let mut depth = 0usize;
    let mut is_steady_state = false;
    for (index, line) in text.lines().enumerate() {
        let body = line.trim_start_matches(' ');
        let failed = |what: &str| Err(format!("line {}: {what}: {line:?}", index + 1));
        if body.starts_with(['}', ']']) {
            depth = depth.saturating_sub(1);
            is_steady_state &= depth > 3;
        }
        if !body.is_empty() && line.len() - body.len() != 2 * depth {
            return failed("indented by two for each level");
        }
        if let Some(rest) = body.strip_prefix('"').filter(|_| !is_list_item(body)) {
            let Some((key, value)) = rest.split_once("\" : ") else { return failed("`\"key\" : value`") };
            let value = value.trim_end_matches(',');
            // It has means of its own, which are integers, and lists of measurements.
            is_steady_state |= key == "steadystate" && value == "{";
            if DECIMALS.contains(&key) && !is_steady_state && !has_six_decimals(value) {
                return failed("six decimals");
            }
            // Options are echoed as strings under arbitrary names.
            if INTEGERS.contains(&key) && value != "[" && !value.starts_with('"') && !is_integer(value) {
                return failed("an integer");
            }
        }
        if body.ends_with(['{', '[']) {
            depth += 1;
        }
    }
    match depth {
        0 => Ok(()),
        _ => Err("unclosed brackets".to_string()),
    }
}

fn is_list_item(body: &str) -> bool {
    !body.contains("\" :") && body.trim_end_matches(',').ends_with('"')
}

fn is_integer(value: &str) -> bool {
    !value.is_empty() && value.strip_prefix('-').unwrap_or(value).bytes().all(|byte| byte.is_ascii_digit())
}

fn has_six_decimals(value: &str) -> bool {
    value.split_once('.').is_some_and(|(whole, decimals)| {
        is_integer(whole) && decimals.len() == 6 && decimals.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// C7: keys of a percentile object: six decimals each.
pub fn percentile_keys(text: &str) -> Verdict {
    let mut inside = false;
    let mut seen = 0;
    for line in text.lines() {
        let body = line.trim();
        if body.starts_with("\"percentile\"") {
            inside = body.ends_with('{');
        } else if body.starts_with('}') {
            inside = false;
        } else if inside {
            let key = body.split('"').nth(1).unwrap_or_default();
            if !has_six_decimals(key) {
                return Err(format!("a percentile has the key {key:?}"));
            }
            seen += 1;
        }
    }
    if seen == 0 { Err("no percentiles".to_string()) } else { Ok(()) }
}

/// C5: the text is one object, from `{` to `}`.
pub fn only_json(text: &str) -> Verdict {
    if !text.starts_with("{\n") {
        return Err(format!("does not start with `{{`: {:?}", text.lines().next()));
    }
    if text.trim_end() != text.trim_end_matches('\n') || !text.ends_with("}\n") {
        return Err(format!("does not end with `}}`: {:?}", text.lines().last()));
    }
    Ok(())
}

/// The documents of a stream: each begins with a line `{` and ends with a line `}`.
pub fn documents(text: &str) -> Vec<String> {
    let mut documents = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        if line == "{" {
            open = Some(String::new());
        }
        if let Some(document) = &mut open {
            document.push_str(line);
            document.push('\n');
            if line == "}" {
                documents.extend(open.take());
            }
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fios_json_is_in_order() {
        let text = "{\n  \"a\" : [\n    {\n      \"iops\" : 1.000000,\n      \"bw\" : 12\n    }\n  ]\n}\n";
        assert_eq!(json_text(text), Ok(()));
        assert_eq!(only_json(text), Ok(()));
        for wrong in [
            text.replace("\" : ", "\": "),
            text.replace("1.000000", "1.0"),
            text.replace(": 12", ": 12.5"),
            text.replace("    {", "   {"),
        ] {
            assert!(json_text(&wrong).is_err(), "{wrong}");
        }
        assert!(only_json(&format!("x\n{text}")).is_err());
    }

    #[test]
    fn percentile_keys_have_six_decimals() {
        let text = "\"percentile\" : {\n \"99.000000\" : 1\n}\n\"x\" : 1";
        assert_eq!(percentile_keys(text), Ok(()));
        assert!(percentile_keys(&text.replace("99.000000", "99.0")).is_err());
        assert!(percentile_keys("").is_err());
    }

    #[test]
    fn documents_of_a_stream_are_cut_at_braces_in_column_zero() {
        assert_eq!(documents("x\n{\n a\n}\n{\n  {\n  }\n}\ny\n").len(), 2);
    }
}

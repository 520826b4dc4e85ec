//! Subcommands as data: what `fiord help --json` prints.
//!
//! Invariant: everything comes from the declarations that read the options and print `--help`.

use clap::{Arg, ArgAction, Command};
use fiord_report::json::Writer;

use crate::manual::{about, full_name, nested, usage};
use crate::subcommand::Subcommand;

/// These subcommands and those below them, as a JSON document.
pub(crate) fn json<'s>(subcommands: impl IntoIterator<Item = &'s Subcommand>) -> String {
    Writer::document(|json| {
        json.list("subcommands", |json| {
            for subcommand in subcommands {
                let mut command = (subcommand.declaration)();
                command.build();
                json.item(|json| write(json, &command));
                nested(&command).for_each(|below| json.item(|json| write(json, below)));
            }
        });
    })
}

fn write(json: &mut Writer, command: &Command) {
    let name = full_name(command);
    json.string("name", name.strip_prefix("fiord ").unwrap_or(&name));
    json.string("description", &about(command));
    json.string("usage", &usage(command));
    json.boolean("needs_subcommand", command.is_subcommand_required_set());
    let shown = |arg: &&Arg| !arg.is_hide_set();
    json.list("arguments", |json| {
        for arg in command.get_positionals().filter(shown) {
            json.item(|json| argument(json, arg));
        }
    });
    json.list("options", |json| {
        for arg in command.get_arguments().filter(|arg| !arg.is_positional()).filter(shown) {
            json.item(|json| option(json, arg));
        }
    });
    let after = command.get_after_long_help().or(command.get_after_help());
    json.string(
        "notes",
        after.map(|text| text.to_string().replace('\u{a0}', " ")).unwrap_or_default().trim(),
    );
}

fn argument(json: &mut Writer, arg: &Arg) {
    json.string("name", value_name(arg).as_deref().unwrap_or(arg.get_id().as_str()));
    json.boolean("is_required", arg.is_required_set());
    what_it_takes(json, arg);
}

fn option(json: &mut Writer, arg: &Arg) {
    json.string("name", arg.get_long().unwrap_or_default());
    optional(json, "short", arg.get_short().map(String::from));
    optional(json, "value", value_name(arg).filter(|_| arg.get_action().takes_values()));
    what_it_takes(json, arg);
}

/// What arguments and options have in common.
fn what_it_takes(json: &mut Writer, arg: &Arg) {
    let is_repeated = arg.get_num_args().is_some_and(|range| range.max_values() > 1)
        || matches!(arg.get_action(), ArgAction::Append);
    json.boolean("may_be_repeated", is_repeated);
    let takes = arg.get_action().takes_values();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    optional(json, "default", (takes && !defaults.is_empty()).then(|| defaults.join(" ")));
    let values = if takes { arg.get_possible_values() } else { Vec::new() };
    let values = values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name());
    json.strings("values", &values.collect::<Vec<_>>());
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    json.string("description", &text.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn value_name(arg: &Arg) -> Option<String> {
    arg.get_value_names().map(|names| names.join(" "))
}

fn optional(json: &mut Writer, key: &str, text: Option<String>) {
    match text {
        Some(text) => json.string(key, &text),
        None => json.null(key),
    }
}

//! An MCP server on stdio whose faults are asked for: by arguments before the handshake, by tools behind it. It answers
//! one line at a time, and ends when its input does.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
    process::ExitCode,
    thread,
    time::Duration,
};

use clap::{Parser, ValueEnum};
use serde_json::{Value, json};

/// A scripted MCP server on stdio.
#[derive(Debug, Parser)]
struct Arguments {
    /// Found in the list of processes by tests; means nothing here.
    #[arg(long)]
    mark: Option<String>,
    /// Prints what is no message before it serves.
    #[arg(long)]
    noise: bool,
    /// Does not end when its input does.
    #[arg(long)]
    ignore_end: bool,
    /// What happens to `initialize`.
    #[arg(long, value_enum, default_value_t = Handshake::Answer)]
    handshake: Handshake,
}

/// What happens to `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Handshake {
    /// An answer.
    Answer,
    /// The process ends with a complaint.
    Die,
    /// A JSON-RPC error.
    Refuse,
    /// Nothing.
    Ignore,
}

const TOOLS: [&str; 14] = [
    "increment",
    "read",
    "env",
    "pid",
    "die",
    "shout",
    "half",
    "long",
    "progress",
    "ask",
    "hold",
    "release",
    "grow",
    "touch",
];

/// The one resource.
const BOARD: &str = "memo:///board";

/// A line far over what anybody should hold.
const LONG: usize = 17 << 20;

struct Server {
    output: io::Stdout,
    input: io::Lines<io::StdinLock<'static>>,
    handshake: Handshake,
    counter: u64,
    /// Ids of calls that are answered on `release`, the last first.
    held: Vec<Value>,
    /// Tools that came while it ran.
    grown: u32,
    /// How often a part of the resource has changed.
    touched: u32,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut server = Server {
        output: io::stdout(),
        input: io::stdin().lock().lines(),
        handshake: arguments.handshake,
        counter: 0,
        held: Vec::new(),
        grown: 0,
        touched: 0,
    };
    let served = server.serve(arguments.noise);
    if arguments.ignore_end {
        // Until it is killed: nobody ever sends here.
        loop {
            thread::park();
        }
    }
    match served {
        Ok(code) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A part of a message, or null.
fn part<'a>(message: &'a Value, pointer: &str) -> &'a Value {
    message.pointer(pointer).unwrap_or(&Value::Null)
}

/// A part of a message that is text, or none.
fn text(message: &Value, pointer: &str) -> String {
    part(message, pointer).as_str().unwrap_or_default().to_owned()
}

fn result(id: &Value, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

// === impl Server ===

impl Server {
    fn serve(&mut self, noise: bool) -> io::Result<ExitCode> {
        if noise {
            self.print(
                b"Welcome to the server!\n\x1b[32mready\x1b[0m\n\n{}\n\"text\"\n\xff\xfe\n{\"half\":",
            )?;
            self.print(b"\n")?;
        }
        while let Some(line) = self.input.next().transpose()? {
            let message: Value = serde_json::from_str(&line)?;
            let (method, id) = (text(&message, "/method"), part(&message, "/id"));
            match (&*method, self.handshake) {
                ("initialize", Handshake::Answer) => {
                    let result = json!({
                        "protocolVersion": part(&message, "/params/protocolVersion"),
                        "capabilities": {
                            "tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {},
                        },
                        "serverInfo": {"name": "stdio", "version": "1"},
                    });
                    self.answer(id, &result)?;
                }
                ("initialize", Handshake::Die) => {
                    eprintln_quietly("starting");
                    eprintln_quietly("fatal: no module named weather");
                    return Ok(ExitCode::from(3));
                }
                ("initialize", Handshake::Refuse) => {
                    self.refuse(id, -32602, "not you")?;
                }
                ("initialize", Handshake::Ignore) => {}
                ("tools/list", _) => {
                    let tool = |name: String| json!({"name": name, "inputSchema": {"type": "object"}});
                    let grown = (0..self.grown).map(|number| format!("grown{number}"));
                    let tools: Vec<Value> =
                        TOOLS.into_iter().map(str::to_owned).chain(grown).map(tool).collect();
                    self.answer(id, &json!({"tools": tools}))?;
                }
                ("resources/list", _) => {
                    self.answer(id, &json!({"resources": [{"uri": BOARD, "name": "board"}]}))?;
                }
                ("tools/call", _) => {
                    if let Some(code) = self.call(&message)? {
                        return Ok(code);
                    }
                }
                ("ping" | "resources/subscribe" | "resources/unsubscribe", _) => {
                    self.answer(id, &json!({}))?;
                }
                _ if id.is_null() || method.is_empty() => {}
                _ => self.refuse(id, -32601, "Method not found")?,
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Runs a tool; an exit code ends the process.
    fn call(&mut self, message: &Value) -> io::Result<Option<ExitCode>> {
        let id = part(message, "/id");
        match &*text(message, "/params/name") {
            "increment" => {
                self.counter += 1;
                self.say(&result(id, &self.counter.to_string()))?;
            }
            "read" => self.say(&result(id, &self.counter.to_string()))?,
            "env" => {
                let mut env: BTreeMap<String, String> = std::env::vars().collect();
                env.insert("(folder)".to_owned(), std::env::current_dir()?.display().to_string());
                self.say(&result(id, &json!(env).to_string()))?;
            }
            "pid" => self.say(&result(id, &std::process::id().to_string()))?,
            "die" => {
                eprintln_quietly("fatal: out of weather");
                return Ok(Some(ExitCode::from(7)));
            }
            "shout" => {
                io::stderr()
                    .write_all(format!("{}\n", "shouting ".repeat(113)).repeat(10 << 10).as_bytes())?;
                self.say(&result(id, "hoarse"))?;
            }
            "half" => {
                let text = result(id, "whole").to_string();
                let (first, second) = text.split_at(text.len() / 2);
                self.print(first.as_bytes())?;
                thread::park_timeout(Duration::from_millis(300));
                self.print(format!("{second}\r\n").as_bytes())?;
            }
            "long" => {
                self.print(&vec![b'x'; LONG])?;
                self.print(b"\n")?;
                self.say(&result(id, &"y".repeat(2 << 20)))?;
            }
            "progress" => {
                let token = part(message, "/params/_meta/progressToken");
                for step in 1..=3 {
                    let params = json!({"progressToken": token, "progress": step, "total": 3});
                    self.say(
                        &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                    )?;
                }
                self.say(&result(id, "done"))?;
            }
            "ask" => {
                self.say(&json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}))?;
                let answer = self.input.next().transpose()?.unwrap_or_default();
                self.say(&result(id, &answer))?;
            }
            tool @ ("grow" | "touch") => self.change(tool, id)?,
            "hold" => self.held.push(id.clone()),
            "release" => {
                for held in std::mem::take(&mut self.held).iter().rev() {
                    self.say(&result(held, &held.to_string()))?;
                }
                self.say(&result(id, "released"))?;
            }
            _ => self.refuse(id, -32602, "no tool")?,
        }
        Ok(None)
    }

    /// Says that something has changed, of no request, and only then answers.
    fn change(&mut self, tool: &str, id: &Value) -> io::Result<()> {
        let (method, params) = if tool == "grow" {
            self.grown += 1;
            ("notifications/tools/list_changed", json!({}))
        } else {
            self.touched += 1;
            ("notifications/resources/updated", json!({"uri": format!("{BOARD}/{}", self.touched)}))
        };
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
        self.say(&result(id, "changed"))
    }

    fn answer(&mut self, id: &Value, result: &Value) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn refuse(&mut self, id: &Value, code: i32, message: &str) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    fn say(&mut self, message: &Value) -> io::Result<()> {
        self.print(format!("{message}\n").as_bytes())
    }

    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)?;
        self.output.flush()
    }
}

/// Says something on standard error; whoever reads it may be gone.
fn eprintln_quietly(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

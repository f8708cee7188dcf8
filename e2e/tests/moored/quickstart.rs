//! The quickstart of the README is what `cargo e2e quickstart` prints, and works when pasted.

use std::fs;

use e2e::{
    example::ExampleServer,
    moored::Moored,
    process::{self, SHORT},
    settings,
};
use tokio::process::Command;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PASTE: &str = include_str!("../../../examples/quickstart.sh");

#[test]
fn the_readme_shows_the_lines_that_the_quickstart_prints() -> Outcome {
    let readme = fs::read_to_string(settings::checkout().join("README.md"))?;
    assert!(readme.contains(&format!("```sh\n{PASTE}```\n")));
    Ok(())
}

#[tokio::test]
async fn the_lines_list_and_call_the_tools_of_the_example_and_end_the_session() -> Outcome {
    let example = ExampleServer::start(([127, 0, 0, 1], 0).into()).await?;
    let manifests = fs::read_to_string(settings::checkout().join("examples/quickstart.yaml"))?;
    let manifests = manifests.replace("http://127.0.0.1:8931/mcp", &example.url());
    let moored = Moored::serve(manifests).await?;
    // The README's address is the quickstart's; the test's own is free.
    let lines = PASTE.replace("http://127.0.0.1:8080/mcp", &moored.url());
    let said = process::output(Command::new("sh").args(["-eu", "-c", &lines]), SHORT).await?;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].contains("example___echo") && lines[0].contains("example___weather"), "{said}");
    assert!(lines[1].contains("24 degrees Celsius in Kiel"), "{said}");
    assert_eq!(lines[2], "the session ended with 204");
    Ok(())
}

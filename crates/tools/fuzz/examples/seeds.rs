//! Writes what cargo-fuzz begins from, from the root of the repository: for each target
//! `fuzz/corpus/TARGET/…` and the dictionary `fuzz/dictionaries/TARGET`.

use stateplane_fuzz::TARGETS;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(".");
    fs::create_dir_all(root.join("fuzz/dictionaries"))?;
    for target in TARGETS {
        let folder = root.join("fuzz/corpus").join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, input) in (target.corpus)(root).iter().enumerate() {
            fs::write(folder.join(format!("seed{number:04}")), input)?;
        }
        // libFuzzer refuses an empty file.
        let mut dictionary = format!("# words of {}\n", target.name);
        for word in target.words {
            dictionary.push('"');
            for byte in word.bytes() {
                // Writing to a string cannot fail.
                let _ = write!(dictionary, "\\x{byte:02x}");
            }
            dictionary.push_str("\"\n");
        }
        let path = root.join("fuzz/dictionaries").join(target.name);
        fs::write(path, dictionary)?;
        println!("{}", target.name);
    }
    Ok(())
}

//! SSH signatures of answers: `ssh-keygen -Y`, as git signs commits.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use protocol::facts::caller::Proof;

use super::{HumanError, Seal};
use runner::random;

/// What a signature is for: one made for a commit is none for a gate.
const NAMESPACE: &str = "brain-gate";

/// Signs an answer with a private key, or with the agent that holds the one of a public key.
///
/// # Errors
///
/// [`HumanError::Ssh`] with what `ssh-keygen` said.
pub fn sign(answer: &str, key: &Path) -> Result<Seal, HumanError> {
    let mut command = ssh_keygen(&["-Y", "sign", "-n", NAMESPACE, "-f"]);
    let armoured = run(command.arg(key), "signing the answer", answer)?;
    Ok(Seal::Ssh(armoured))
}

/// The keys whose signatures count: `gates.signers`, as `ssh-keygen` and git read it.
#[derive(Clone, Debug)]
pub struct Signers {
    file: PathBuf,
}

impl Signers {
    /// Takes the list in a file.
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Verifies a signature over an answer; gives the proof with the signer's name, `None` when it does not count.
    ///
    /// # Errors
    ///
    /// When it could not be looked at, which is no verdict.
    pub fn verify(&self, answer: &str, seal: &Seal) -> Result<Option<Proof>, HumanError> {
        let Seal::Ssh(armoured) = seal else {
            return Ok(None);
        };
        // An unreadable list is no list without names.
        fs::File::open(&self.file).map_err(HumanError::io("reading", &self.file))?;
        let draft = Draft::write(armoured)?;
        let mut who = ssh_keygen(&["-Y", "find-principals", "-f"]);
        who.arg(&self.file).arg("-s").arg(&draft.0);
        let Ok(names) = run(&mut who, "finding the signer", "") else {
            return Ok(None);
        };
        for name in names.lines() {
            let mut verify = ssh_keygen(&["-Y", "verify", "-n", NAMESPACE, "-I", name, "-f"]);
            verify.arg(&self.file).arg("-s").arg(&draft.0);
            if run(&mut verify, "verifying the answer", answer).is_ok() {
                let signer = name.to_owned();
                return Ok(Some(Proof::Signed { signer }));
            }
        }
        Ok(None)
    }
}

fn ssh_keygen(words: &[&str]) -> Command {
    let mut command = Command::new("ssh-keygen");
    command.args(words);
    command
}

fn run(command: &mut Command, doing: &'static str, input: &str) -> Result<String, HumanError> {
    let failed = |said: String| HumanError::Ssh { doing, said };
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| failed(format!("{error}; install OpenSSH")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ends early says itself why; a broken pipe here would only hide it.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// A signature in a file of its own, since `ssh-keygen` reads it from nowhere else; gone when dropped.
struct Draft(PathBuf);

impl Draft {
    fn write(text: &str) -> Result<Self, HumanError> {
        let folder = std::env::temp_dir();
        let name = random::bytes::<16>().map_err(HumanError::io("making a name in", &folder))?;
        let file = folder.join(format!("brain-{}.sig", random::hex(&name)));
        let mut new = fs::File::create_new(&file).map_err(HumanError::io("writing", &file))?;
        let draft = Self(file);
        new.write_all(text.as_bytes())
            .map_err(HumanError::io("writing", &draft.0))?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // a signature is no secret
    }
}

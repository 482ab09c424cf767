//! Everything a simulated disk knows: files, names, locks, the faults under way.
//!
//! Names: `live` is what operations see, `durable` is what a crash surely keeps, `unsynced` are the
//! changes between, in order; each stays until all directories it touches were synced.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::faults::{FaultConfig, Faults, Kind};
use super::node::Node;
use super::random::Random;
use crate::disk::Entry;

#[derive(Clone, Debug)]
enum NameChange {
    Link { path: PathBuf, inode: u64 },
    Unlink { path: PathBuf, inode: u64 },
    Rename { to: PathBuf, inode: u64 },
}

#[derive(Clone, Debug)]
struct UnsyncedName {
    change: NameChange,
    /// Directories still to be synced.
    dirs: Vec<PathBuf>,
}

type Names = BTreeMap<PathBuf, u64>;

#[derive(Clone, Debug)]
pub(super) struct World {
    random: Random,
    faults: Faults,
    nodes: BTreeMap<u64, Node>,
    next_inode: u64,
    /// Directories; durable at once.
    dirs: BTreeSet<PathBuf>,
    live: Names,
    durable: Names,
    unsynced: Vec<UnsyncedName>,
    locks: BTreeSet<PathBuf>,
    operations: u64,
    operations_max: u64,
    crashed: bool,
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            // A file has one name: the one it got last among the changes that survive.
            Self::Link { path, inode } | Self::Rename { to: path, inode } => {
                names.retain(|_, named| named != inode);
                names.insert(path.clone(), *inode);
            }
            Self::Unlink { path, inode } => {
                if names.get(path) == Some(inode) {
                    names.remove(path);
                }
            }
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

fn crashed() -> io::Error {
    io::Error::other("crashed")
}

impl World {
    pub(super) fn new(seed: u64, faults: FaultConfig) -> Self {
        Self {
            random: Random::new(seed),
            faults: Faults::new(faults),
            nodes: BTreeMap::new(),
            next_inode: 1,
            dirs: BTreeSet::from([PathBuf::new(), PathBuf::from("/")]),
            live: Names::new(),
            durable: Names::new(),
            unsynced: Vec::new(),
            locks: BTreeSet::new(),
            operations: 0,
            operations_max: u64::MAX,
            crashed: false,
        }
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn crash_after(&mut self, operations: u64) {
        self.operations_max = operations;
    }

    pub(super) fn set_faults(&mut self, faults: FaultConfig) {
        self.faults = Faults::new(faults);
    }

    /// A world like this one in another process, whose handles and locks are gone.
    pub(super) fn fork(&mut self) -> Self {
        let mut next = self.clone();
        // Another outcome for whoever asks again.
        self.random.next();
        next.crashed = false;
        next.operations = 0;
        next.operations_max = u64::MAX;
        next.locks.clear();
        let capacity_bytes = next.faults.capacity_bytes;
        next.faults = Faults::new(FaultConfig { capacity_bytes, ..FaultConfig::default() });
        next.nodes.values_mut().for_each(|node| node.handles = 0);
        next.forget_unreachable();
        next
    }

    pub(super) fn kill(&mut self) -> Self {
        self.crashed = true;
        self.fork()
    }

    pub(super) fn crash(&mut self) -> Self {
        let mut next = self.kill();
        for UnsyncedName { change, .. } in std::mem::take(&mut next.unsynced) {
            if next.random.coin() {
                change.apply(&mut next.durable);
            }
        }
        next.live = next.durable.clone();
        next.forget_unreachable();
        for node in next.nodes.values_mut() {
            *node = node.crash(&mut next.random);
        }
        next
    }

    fn forget_unreachable(&mut self) {
        let mut reachable: BTreeSet<u64> =
            self.live.values().chain(self.durable.values()).copied().collect();
        reachable.extend(self.unsynced.iter().map(|unsynced| match unsynced.change {
            NameChange::Link { inode, .. }
            | NameChange::Unlink { inode, .. }
            | NameChange::Rename { inode, .. } => inode,
        }));
        self.nodes.retain(|inode, node| node.handles > 0 || reachable.contains(inode));
    }

    fn alive(&self) -> io::Result<()> {
        if self.crashed || self.operations >= self.operations_max {
            return Err(crashed());
        }
        Ok(())
    }

    /// Counts an operation that changes something.
    fn begin(&mut self) -> io::Result<()> {
        self.alive()?;
        self.operations += 1;
        Ok(())
    }

    fn begin_names(&mut self) -> io::Result<()> {
        self.begin()?;
        self.fail_if(Kind::Names)
    }

    fn fail_if(&mut self, kind: Kind) -> io::Result<()> {
        if self.faults.strikes(kind, &mut self.random) { Err(Errno::IO.into()) } else { Ok(()) }
    }

    fn node(&mut self, inode: u64) -> &mut Node {
        self.nodes.get_mut(&inode).expect("BUG: an open file is gone")
    }

    fn change_names(&mut self, change: NameChange, paths: &[&Path]) {
        change.apply(&mut self.live);
        let mut dirs: Vec<_> = paths.iter().map(|path| parent(path)).collect();
        dirs.dedup();
        self.unsynced.push(UnsyncedName { change, dirs });
    }

    fn needs_dir(&self, dir: &Path) -> io::Result<()> {
        if self.dirs.contains(dir) { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
    }

    fn named(&self, path: &Path) -> io::Result<u64> {
        match self.live.get(path) {
            Some(inode) => Ok(*inode),
            None if self.dirs.contains(path) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<u64> {
        self.begin_names()?;
        self.needs_dir(&parent(path))?;
        if self.live.contains_key(path) || self.dirs.contains(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let inode = self.link_new(path);
        self.node(inode).handles = 1;
        Ok(inode)
    }

    fn link_new(&mut self, path: &Path) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.nodes.insert(inode, Node::default());
        self.change_names(NameChange::Link { path: path.to_owned(), inode }, &[path]);
        inode
    }

    pub(super) fn open(&mut self, path: &Path) -> io::Result<u64> {
        self.alive()?;
        let inode = self.named(path)?;
        self.node(inode).handles += 1;
        Ok(inode)
    }

    pub(super) fn close(&mut self, inode: u64) {
        self.node(inode).handles -= 1;
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin_names()?;
        let inode = self.named(from)?;
        self.needs_dir(&parent(to))?;
        if self.dirs.contains(to) {
            return Err(ErrorKind::IsADirectory.into());
        }
        if from != to {
            let change = NameChange::Rename { to: to.to_owned(), inode };
            self.change_names(change, &[from, to]);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.begin_names()?;
        let inode = self.named(path)?;
        self.change_names(NameChange::Unlink { path: path.to_owned(), inode }, &[path]);
        Ok(())
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.alive()?;
        self.needs_dir(dir)?;
        let name = |path: &Path| {
            let inside = path.parent() == Some(dir);
            inside.then(|| path.file_name()?.to_str().map(str::to_owned)).flatten()
        };
        let files = self.live.iter().filter_map(|(path, inode)| {
            let len = self.nodes[inode].live().len() as u64;
            Some(Entry { name: name(path)?, len, is_dir: false })
        });
        let dirs = self
            .dirs
            .iter()
            .filter_map(|path| Some(Entry { name: name(path)?, len: 0, is_dir: true }));
        let mut entries: Vec<_> = files.chain(dirs).collect();
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    pub(super) fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        self.begin_names()?;
        if dir.ancestors().any(|above| self.live.contains_key(above)) {
            return Err(ErrorKind::NotADirectory.into());
        }
        self.dirs.extend(dir.ancestors().map(Path::to_owned));
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.begin_names()?;
        self.needs_dir(dir)?;
        let durable = &mut self.durable;
        self.unsynced.retain_mut(|unsynced| {
            unsynced.dirs.retain(|touched| touched != dir);
            if unsynced.dirs.is_empty() {
                unsynced.change.apply(durable);
            }
            !unsynced.dirs.is_empty()
        });
        self.forget_unreachable();
        Ok(())
    }

    /// Whether the lock was free.
    pub(super) fn lock(&mut self, path: &Path) -> io::Result<bool> {
        self.alive()?;
        self.needs_dir(&parent(path))?;
        if !self.live.contains_key(path) {
            self.begin_names()?;
            self.link_new(path);
        }
        Ok(self.locks.insert(path.to_owned()))
    }

    pub(super) fn unlock(&mut self, path: &Path) {
        self.locks.remove(path);
    }

    pub(super) fn len(&mut self, inode: u64) -> io::Result<u64> {
        self.alive()?;
        Ok(self.node(inode).live().len() as u64)
    }

    pub(super) fn read(&mut self, inode: u64, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.alive()?;
        self.fail_if(Kind::Read)?;
        if buf.is_empty() {
            return Ok(());
        }
        let range = usize::try_from(offset)
            .ok()
            .and_then(|start| Some(start..start.checked_add(buf.len())?));
        let bytes = range.and_then(|range| self.node(inode).live().get(range));
        buf.copy_from_slice(bytes.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn used_bytes(&self) -> u64 {
        let named: BTreeSet<_> = self.live.values().collect();
        let counts = |(inode, node): &(&u64, &Node)| node.handles > 0 || named.contains(inode);
        self.nodes.iter().filter(counts).map(|(_, node)| node.allocated_bytes()).sum()
    }

    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        self.alive()?;
        Ok(self.faults.capacity_bytes.saturating_sub(self.used_bytes()))
    }

    /// How far a file may grow.
    fn len_max(&mut self, inode: u64) -> io::Result<u64> {
        if self.faults.capacity_bytes == u64::MAX {
            return Ok(u64::MAX);
        }
        let free = self.free_bytes()?;
        Ok(self.node(inode).allocated_bytes() + free)
    }

    pub(super) fn write(&mut self, inode: u64, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.begin()?;
        self.fail_if(Kind::Write)?;
        let end = offset.checked_add(bytes.len() as u64).ok_or(ErrorKind::FileTooLarge)?;
        let start = usize::try_from(offset).map_err(|_| ErrorKind::FileTooLarge)?;
        let torn = self.faults.strikes(Kind::TornWrite, &mut self.random);
        let mut written = bytes.len();
        let mut outcome = Ok(());
        if torn {
            written = self.random.below(bytes.len() as u64 + 1) as usize;
            outcome = Err(Errno::IO.into());
        }
        let len_max = self.len_max(inode)?;
        if end > len_max {
            written = written.min(len_max.saturating_sub(offset) as usize);
            outcome = Err(Errno::NOSPC.into());
        }
        if written > 0 {
            self.node(inode).write(start, &bytes[..written]);
        }
        outcome
    }

    pub(super) fn set_len(&mut self, inode: u64, len: u64) -> io::Result<()> {
        self.begin()?;
        self.fail_if(Kind::Write)?;
        if len > self.len_max(inode)? {
            return Err(Errno::NOSPC.into());
        }
        let len = usize::try_from(len).map_err(|_| ErrorKind::FileTooLarge)?;
        self.node(inode).set_len(len);
        Ok(())
    }

    pub(super) fn reserve(&mut self, inode: u64, len: u64) -> io::Result<()> {
        self.begin()?;
        self.fail_if(Kind::Write)?;
        if len > self.len_max(inode)? {
            return Err(Errno::NOSPC.into());
        }
        self.node(inode).reserve(len);
        Ok(())
    }

    pub(super) fn sync(&mut self, inode: u64) -> io::Result<()> {
        self.begin()?;
        let failed = self.fail_if(Kind::Sync);
        let node = self.nodes.get_mut(&inode).expect("BUG: an open file is gone");
        match failed {
            Ok(()) => node.sync(),
            Err(_) => node.fail_sync(&mut self.random),
        }
        failed
    }

    pub(super) fn flip_bit(&mut self, path: &Path, offset: u64, bit: u8) -> bool {
        let Some(&inode) = self.live.get(path) else { return false };
        usize::try_from(offset).is_ok_and(|offset| self.node(inode).flip_bit(offset, bit))
    }

    pub(super) fn flip_random_bit(
        &mut self,
        matching: &dyn Fn(&Path) -> bool,
    ) -> Option<(PathBuf, u64, u8)> {
        let durable_len = |inode: &u64| self.nodes[inode].durable_len() as u64;
        let files = self.live.iter().filter(|(path, _)| matching(path));
        let lens: Vec<_> = files.map(|(path, inode)| (path.clone(), durable_len(inode))).collect();
        let total: u64 = lens.iter().map(|(_, len)| len).sum();
        if total == 0 {
            return None;
        }
        let mut at = self.random.below(total);
        let bit = self.random.below(8) as u8;
        for (path, len) in lens {
            if at < len {
                self.flip_bit(&path, at, bit);
                return Some((path, at, bit));
            }
            at -= len;
        }
        None
    }

    pub(super) fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let content = |inode: &u64| self.nodes[inode].live().to_vec();
        self.live.iter().map(|(path, inode)| (path.clone(), content(inode))).collect()
    }
}

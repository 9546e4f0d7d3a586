//! The compact binary form of a graph: all of it, to be loaded faster than it is built.
//!
//! `ETUDEGRF`, the builder's version, the files in the order of their paths, and a BLAKE3 digest of all
//! that. Numbers are LEB128, lists and texts come after their lengths. A file has its path, the digest of
//! its content, its facts and its edges.

use std::sync::Arc;

use super::{
    BUILDER_VERSION, Graph, Linked,
    facts::{
        Binding, ChainPart, Definition, DefinitionKind, FileFacts, Import, Span, Symbol, Text, Use,
    },
    language::Language,
    link::{Links, SourceFile},
    node::{EdgeKind, Place},
    parallel::in_parallel,
};

const MAGIC: &[u8; 8] = b"ETUDEGRF";
const DIGEST: usize = blake3::OUT_LEN;

/// What is no graph in this form, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}, `{field}`: {detail}")]
pub struct BinaryError {
    pub offset: usize,
    pub field: &'static str,
    pub detail: String,
}

impl Graph {
    /// Whether these bytes call themselves a graph in this form.
    pub fn is_binary(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder(Vec::new());
        out.0.extend(MAGIC);
        out.number(BUILDER_VERSION);
        out.length(self.files.len());
        for (file, linked) in self.files.iter().zip(&self.links) {
            out.text(&file.path);
            out.0.extend(file.digest);
            out.facts(&file.facts);
            out.links(&linked.links);
        }
        let digest = blake3::hash(&out.0);
        out.0.extend(digest.as_bytes());
        out.0
    }

    /// Reads what [`Graph::to_bytes`] wrote, on up to `threads` threads.
    ///
    /// # Errors
    /// What another builder wrote, what was damaged, and what is no graph.
    pub fn from_bytes(bytes: &[u8], threads: usize) -> Result<Self, BinaryError> {
        let fault = |offset, field, detail: &str| BinaryError {
            offset,
            field,
            detail: detail.to_owned(),
        };
        let Some(content) = bytes.len().checked_sub(DIGEST).map(|end| &bytes[..end]) else {
            return Err(fault(0, "digest", "the file is too short for a graph"));
        };
        if !content.starts_with(MAGIC) {
            return Err(fault(0, "magic", "this is no graph in the binary form"));
        }
        let mut input = Decoder {
            bytes: content,
            at: MAGIC.len(),
            field: "version",
        };
        let version = input.number()?;
        if version != BUILDER_VERSION {
            let detail =
                format!("written by builder {version}, this is {BUILDER_VERSION}: build it again");
            return Err(fault(MAGIC.len(), "version", &detail));
        }
        if blake3::hash(content).as_bytes() != &bytes[content.len()..] {
            let detail = "the content does not have this digest: the file is damaged";
            return Err(fault(content.len(), "digest", detail));
        }
        let count = input.length("files")?;
        let mut read = Vec::with_capacity(count.min(1 << 16));
        for _ in 0..count {
            let path = input.text("path")?;
            let in_order = read
                .last()
                .is_none_or(|(last, ..): &(String, _, _, _)| *last < path);
            input.check(in_order, "files are not in the order of their paths")?;
            let digest = input.digest()?;
            read.push((path, digest, Arc::new(input.facts()?), input.links()?));
        }
        input.field = "end";
        input.check(input.at == content.len(), "more follows than the files")?;
        let read = in_parallel(read, threads, |(path, digest, facts, links)| {
            (SourceFile::new(path, digest, facts), links)
        });
        let (files, links): (Vec<SourceFile>, Vec<Links>) = read.into_iter().unzip();
        input.field = "edges";
        for (file, links) in files.iter().zip(&links) {
            let is_place = |place: &Place| {
                let facts = files.get(place.file as usize).map(|file| &file.facts);
                let within =
                    |facts: &FileFacts, index: u32| (index as usize) < facts.definitions.len();
                facts.is_some_and(|facts| place.definition.is_none_or(|index| within(facts, index)))
            };
            let is_whole = links.edges.iter().all(|(source, _, target)| {
                let definitions = file.facts.definitions.len();
                source.is_none_or(|index| (index as usize) < definitions) && is_place(target)
            });
            let known = links
                .files
                .iter()
                .all(|file| (*file as usize) < files.len());
            input.check(is_whole && known, "an edge leads nowhere")?;
        }
        let linked = in_parallel(links, threads, |links| Arc::new(Linked::from(links)));
        Ok(Self::of_linked(files, linked))
    }
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn number(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn length(&mut self, length: usize) {
        self.number(u32::try_from(length).unwrap_or(u32::MAX));
    }

    fn option(&mut self, number: Option<u32>) {
        self.number(number.map_or(0, |number| number + 1));
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.extend(text.as_bytes());
    }

    fn part(&mut self, text: Text) {
        self.number(text.start);
        self.number(text.length);
    }

    fn facts(&mut self, facts: &FileFacts) {
        self.number(facts.language as u32);
        self.number(facts.lines);
        self.text(facts.fault.as_deref().unwrap_or_default());
        self.text(&facts.text);
        self.part(facts.documentation);
        self.length(facts.symbols.len());
        facts.symbols.iter().for_each(|text| self.part(*text));
        self.length(facts.chains.len());
        for part in &facts.chains {
            self.option(part.before);
            self.number(part.name.0);
            self.number(part.calls);
        }
        self.length(facts.bases.len());
        facts.bases.iter().for_each(|chain| self.number(*chain));
        self.length(facts.definitions.len());
        for definition in &facts.definitions {
            self.number(definition.kind as u32 * 2 + u32::from(definition.is_property));
            self.number(definition.name.0);
            self.option(definition.parent);
            self.number(definition.span.start);
            self.number(definition.span.end);
            self.number(definition.line);
            self.part(definition.signature);
            self.part(definition.documentation);
            self.number(definition.bases.0);
            self.number(definition.bases.1);
            self.option(definition.value);
            self.option(definition.value_scope);
        }
        self.length(facts.imports.len());
        for import in &facts.imports {
            self.option(import.scope);
            self.number(import.module.0);
            self.number(import.level);
            self.option(import.name.map(|name| name.0));
            self.number(import.bound.0);
        }
        self.length(facts.bindings.len());
        for binding in &facts.bindings {
            self.number(binding.scope);
            self.number(binding.name.0);
            self.option(binding.value);
        }
        self.length(facts.uses.len());
        for used in &facts.uses {
            self.option(used.scope);
            self.number(used.chain);
        }
    }

    fn links(&mut self, links: &Links) {
        self.length(links.edges.len());
        for (source, kind, target) in &links.edges {
            self.option(*source);
            self.number(*kind as u32);
            self.number(target.file);
            self.option(target.definition);
        }
        self.length(links.files.len());
        links.files.iter().for_each(|file| self.number(*file));
        self.length(links.names.len());
        for name in &links.names {
            self.0.extend(name.to_le_bytes());
        }
    }
}

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    field: &'static str,
}

impl Decoder<'_> {
    fn check(&self, holds: bool, detail: &str) -> Result<(), BinaryError> {
        match holds {
            true => Ok(()),
            false => Err(BinaryError {
                offset: self.at,
                field: self.field,
                detail: detail.to_owned(),
            }),
        }
    }

    fn take(&mut self, count: usize) -> Result<&[u8], BinaryError> {
        let rest = self.bytes.len() - self.at;
        self.check(count <= rest, "the file ends here")?;
        self.at += count;
        Ok(&self.bytes[self.at - count..self.at])
    }

    fn number(&mut self) -> Result<u32, BinaryError> {
        let mut number = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                self.check(shift < 28 || byte < 16, "the number is too large")?;
                return Ok(number);
            }
        }
        self.check(false, "the number is too large").map(|()| 0)
    }

    /// Of a list whose elements take a byte or more each.
    fn length(&mut self, field: &'static str) -> Result<usize, BinaryError> {
        self.field = field;
        let length = self.number()? as usize;
        let rest = self.bytes.len() - self.at;
        self.check(length <= rest, "the list is longer than the file")?;
        Ok(length)
    }

    fn below(&mut self, limit: usize) -> Result<u32, BinaryError> {
        let number = self.number()?;
        self.check((number as usize) < limit, "it names nothing")?;
        Ok(number)
    }

    fn option(&mut self, limit: usize) -> Result<Option<u32>, BinaryError> {
        let number = self.number()?;
        self.check(number as usize <= limit, "it names nothing")?;
        Ok(number.checked_sub(1))
    }

    fn text(&mut self, field: &'static str) -> Result<String, BinaryError> {
        let length = self.length(field)?;
        let text = self.take(length)?.to_vec();
        String::from_utf8(text).map_err(|_| BinaryError {
            offset: self.at,
            field,
            detail: "the text is not UTF-8".to_owned(),
        })
    }

    fn digest(&mut self) -> Result<[u8; DIGEST], BinaryError> {
        self.field = "content digest";
        let mut digest = [0; DIGEST];
        digest.copy_from_slice(self.take(DIGEST)?);
        Ok(digest)
    }

    fn part(&mut self, text: &str) -> Result<Text, BinaryError> {
        let (start, length) = (self.number()?, self.number()?);
        let part = text.get(start as usize..start as usize + length as usize);
        self.check(part.is_some(), "it is no part of the text")?;
        Ok(Text { start, length })
    }

    fn list<T>(
        &mut self,
        field: &'static str,
        mut read: impl FnMut(&mut Self, usize) -> Result<T, BinaryError>,
    ) -> Result<Vec<T>, BinaryError> {
        let length = self.length(field)?;
        (0..length).map(|index| read(self, index)).collect()
    }

    fn facts(&mut self) -> Result<FileFacts, BinaryError> {
        self.field = "language";
        let language = Language::ALL[self.below(Language::ALL.len())? as usize];
        self.field = "lines";
        let lines = self.number()?;
        let fault = Some(self.text("fault")?).filter(|fault| !fault.is_empty());
        let text = self.text("text")?;
        self.field = "documentation";
        let documentation = self.part(&text)?;
        let symbols = self.list("symbols", |input, _| input.part(&text))?;
        let names = symbols.len();
        let chains = self.list("chains", |input, index| {
            Ok(ChainPart {
                // A chain begins with earlier ones, so none is without end.
                before: input.option(index)?,
                name: Symbol(input.below(names)?),
                calls: input.number()?,
            })
        })?;
        let bases = self.list("bases", |input, _| input.below(chains.len()))?;
        let mut definitions = self.list("definitions", |input, _| {
            let kind = input.below(6)?;
            let is_property = kind % 2 == 1;
            let kind = [
                DefinitionKind::Class,
                DefinitionKind::Function,
                DefinitionKind::Attribute,
            ][kind as usize / 2];
            let name = Symbol(input.below(names)?);
            let parent = input.number()?.checked_sub(1);
            let (start, end) = (input.number()?, input.number()?);
            let line = input.number()?;
            let (signature, documentation) = (input.part(&text)?, input.part(&text)?);
            let (first, last) = (input.number()?, input.number()?);
            let of_bases = first <= last && last as usize <= bases.len();
            input.check(of_bases, "its bases are not there")?;
            Ok(Definition {
                signature,
                documentation,
                bases: (first, last),
                value: input.option(chains.len())?,
                value_scope: input.number()?.checked_sub(1),
                is_property,
                ..Definition::plain(kind, name, parent, Span { start, end }, line)
            })
        })?;
        self.check_parents(&mut definitions)?;
        let count = definitions.len();
        let imports = self.list("imports", |input, _| {
            Ok(Import {
                scope: input.option(count)?,
                module: Symbol(input.below(names)?),
                level: input.number()?,
                name: input.option(names)?.map(Symbol),
                bound: Symbol(input.below(names)?),
            })
        })?;
        let bindings = self.list("bindings", |input, _| {
            Ok(Binding {
                scope: input.below(count)?,
                name: Symbol(input.below(names)?),
                value: input.option(chains.len())?,
            })
        })?;
        let uses = self.list("uses", |input, _| {
            Ok(Use {
                scope: input.option(count)?,
                chain: input.below(chains.len())?,
            })
        })?;
        Ok(FileFacts {
            language,
            lines,
            documentation,
            fault,
            definitions,
            imports,
            bindings,
            uses,
            bases,
            chains,
            symbols,
            text,
        })
    }

    /// That what definitions stand in is there, and that nothing stands in itself.
    fn check_parents(&self, definitions: &mut [Definition]) -> Result<(), BinaryError> {
        for definition in definitions.iter() {
            let scopes = [definition.parent, definition.value_scope];
            let known = |index: &u32| (*index as usize) < definitions.len();
            let all_known = scopes.iter().flatten().all(known);
            self.check(all_known, "a definition stands in none")?;
        }
        for definition in definitions.iter() {
            let (mut at, mut steps) = (definition.parent, 0);
            while let Some(parent) = at {
                at = definitions[parent as usize].parent;
                steps += 1;
                self.check(steps <= definitions.len(), "a definition stands in itself")?;
            }
        }
        Ok(())
    }

    fn links(&mut self) -> Result<Links, BinaryError> {
        let edges = self.list("edges", |input, _| {
            let source = input.number()?.checked_sub(1);
            let kind = EdgeKind::ALL[input.below(EdgeKind::ALL.len())? as usize];
            let file = input.number()?;
            let definition = input.number()?.checked_sub(1);
            Ok((source, kind, Place { file, definition }))
        })?;
        self.check(edges.is_sorted(), "edges are not in order")?;
        let files = self.list("files looked into", |input, _| input.number())?;
        self.check(files.is_sorted(), "files are not in order")?;
        let names = self.list("names looked up", |input, _| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(input.take(8)?);
            Ok(u64::from_le_bytes(bytes))
        })?;
        Ok(Links {
            edges,
            files,
            names,
        })
    }
}

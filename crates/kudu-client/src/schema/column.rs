//! Columns and schemas, and how they travel.

use std::collections::HashSet;

use super::types::known_type;
use super::{Compression, DataType, Encoding, Value};
use crate::error::Error;
use crate::proto::{ColumnSchemaIn, ColumnSchemaOut, ColumnTypeAttributes, SchemaIn, SchemaOut};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name, case-sensitive, at most 256 bytes.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether rows may be without a value.
    pub nullable: bool,
    /// What a row has that was inserted without a value.
    pub default: Option<Value>,
    /// How blocks are encoded.
    pub encoding: Encoding,
    /// How blocks are compressed.
    pub compression: Compression,
    /// Size of a block before it is encoded, bytes; 0: the server's (256 KiB, unless it was told
    /// otherwise). Servers read and decode whole blocks.
    pub block_bytes: i32,
    /// Digits of a decimal.
    pub precision: Option<i32>,
    /// Digits of a decimal after the point.
    pub scale: Option<i32>,
    /// Characters of a `Varchar`.
    pub length: Option<i32>,
    /// Free text.
    pub comment: Option<String>,
    /// Whether a value stays once it is written (Kudu 1.17).
    pub immutable: bool,
    /// Whether the server fills it in. Such columns cannot be created by this client.
    pub auto_incrementing: bool,
}

impl Column {
    /// A column without anything special: not nullable, server's encoding.
    #[must_use]
    pub fn new(name: &str, data_type: DataType) -> Self {
        Self {
            name: name.to_owned(),
            data_type,
            nullable: false,
            default: None,
            encoding: Encoding::Auto,
            compression: Compression::Default,
            block_bytes: 0,
            precision: None,
            scale: None,
            length: None,
            comment: None,
            immutable: false,
            auto_incrementing: false,
        }
    }

    /// Rows may be without a value.
    #[must_use]
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// What rows have that are inserted without a value.
    #[must_use]
    pub fn default_value(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// How blocks are encoded.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// How blocks are compressed.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Size of a block before it is encoded, bytes.
    #[must_use]
    pub fn block_bytes(mut self, bytes: i32) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Digits of a decimal, all and after the point.
    #[must_use]
    pub fn decimal(mut self, precision: i32, scale: i32) -> Self {
        self.precision = Some(precision);
        self.scale = Some(scale);
        self
    }

    /// Characters of a `Varchar`.
    #[must_use]
    pub fn varchar_length(mut self, length: i32) -> Self {
        self.length = Some(length);
        self
    }

    fn attributes(&self) -> Option<ColumnTypeAttributes> {
        let given = self.precision.is_some() || self.scale.is_some() || self.length.is_some();
        given.then_some(ColumnTypeAttributes {
            precision: self.precision,
            scale: self.scale,
            length: self.length,
        })
    }

    /// As far as servers compare it: in projections and writes.
    pub(crate) fn reference(&self) -> ColumnSchemaOut {
        ColumnSchemaOut {
            name: self.name.clone(),
            data_type: self.data_type.number(),
            is_nullable: Some(self.nullable),
            type_attributes: self.attributes(),
            ..ColumnSchemaOut::default()
        }
    }

    /// Everything, to create it.
    pub(crate) fn definition(&self, is_key: bool) -> Result<ColumnSchemaOut, Error> {
        if self.auto_incrementing {
            return Err(Error::invalid("auto-incrementing columns cannot be created"));
        }
        if let Some(default) = &self.default {
            default.check(self.data_type, &self.name)?;
        }
        Ok(ColumnSchemaOut {
            is_key: Some(is_key),
            read_default_value: self.default.as_ref().map(|v| v.wire(self.data_type)),
            encoding: Some(self.encoding.number()),
            compression: Some(self.compression.number()),
            block_bytes: (self.block_bytes != 0).then_some(self.block_bytes),
            comment: self.comment.clone(),
            immutable: self.immutable.then_some(true),
            ..self.reference()
        })
    }

    fn from_message(message: ColumnSchemaIn) -> Result<Self, Error> {
        let data_type = known_type(message.data_type, &message.name)?;
        let attributes = message.type_attributes.unwrap_or_default();
        let default = message.write_default_value.or(message.read_default_value);
        Ok(Self {
            data_type,
            nullable: message.is_nullable.unwrap_or(false),
            default: default.and_then(|bytes| Value::from_wire(&bytes, data_type)),
            encoding: Encoding::from_number(message.encoding.unwrap_or(0)),
            compression: Compression::from_number(message.compression.unwrap_or(0)),
            block_bytes: message.block_bytes.unwrap_or(0),
            precision: attributes.precision,
            scale: attributes.scale,
            length: attributes.length,
            comment: message.comment,
            immutable: message.immutable.unwrap_or(false),
            auto_incrementing: message.is_auto_incrementing.unwrap_or(false),
            name: message.name,
        })
    }
}

/// The columns of a table; those of the primary key come first.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    columns: Vec<Column>,
    key_columns: usize,
}

impl Schema {
    /// A schema whose first `key_columns` columns are the primary key.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]: no key, or one with a column that cannot be in a key; a name
    /// that occurs twice.
    pub fn new(columns: Vec<Column>, key_columns: usize) -> Result<Self, Error> {
        let key = columns.get(..key_columns).unwrap_or_default();
        if key.is_empty() {
            return Err(Error::invalid("the primary key needs at least one column of the schema"));
        }
        if let Some(bad) = key.iter().find(|c| c.nullable || !c.data_type.may_be_key()) {
            return Err(Error::invalid(format!(
                "column {} ({:?}) cannot be in the primary key",
                bad.name, bad.data_type
            )));
        }
        let mut names = HashSet::new();
        if let Some(twice) = columns.iter().find(|c| !names.insert(c.name.as_str())) {
            return Err(Error::invalid(format!("column {} occurs twice", twice.name)));
        }
        Ok(Self { columns, key_columns })
    }

    /// All columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns of the primary key.
    #[must_use]
    pub fn key(&self) -> &[Column] {
        self.columns.get(..self.key_columns).unwrap_or_default()
    }

    /// Index of the column of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    pub(crate) fn index(&self, name: &str) -> Result<usize, Error> {
        self.find(name).ok_or_else(|| Error::invalid(format!("there is no column {name}")))
    }

    pub(crate) fn has_nullable(&self) -> bool {
        self.columns.iter().any(|c| c.nullable)
    }

    /// To create the table.
    pub(crate) fn definition(&self) -> Result<SchemaOut, Error> {
        let columns = self.columns.iter().enumerate();
        let columns = columns.map(|(i, c)| c.definition(i < self.key_columns));
        Ok(SchemaOut { columns: columns.collect::<Result<_, _>>()? })
    }

    /// To name the columns of rows.
    pub(crate) fn reference(&self) -> SchemaOut {
        let columns = self.columns.iter().enumerate().map(|(i, column)| ColumnSchemaOut {
            is_key: (i < self.key_columns).then_some(true),
            ..column.reference()
        });
        SchemaOut { columns: columns.collect() }
    }

    /// The schema and the ids of its columns.
    pub(crate) fn from_message(message: SchemaIn) -> Result<(Self, Vec<u32>), Error> {
        let key_columns = message.columns.iter().take_while(|c| c.is_key.unwrap_or(false)).count();
        let ids = message.columns.iter().map(|c| c.id.unwrap_or(u32::MAX)).collect();
        let columns: Result<Vec<_>, _> =
            message.columns.into_iter().map(Column::from_message).collect();
        Ok((Self::new(columns?, key_columns)?, ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked() {
        let a = Column::new("a", DataType::Int64);
        let b = Column::new("b", DataType::Double);
        assert!(Schema::new(vec![a.clone(), b.clone()], 1).is_ok());
        assert!(Schema::new(vec![a.clone(), b.clone()], 0).is_err());
        assert!(Schema::new(vec![a.clone(), b.clone()], 2).is_err());
        assert!(Schema::new(vec![a.clone(), b], 3).is_err());
        assert!(Schema::new(vec![a.clone().nullable()], 1).is_err());
        assert!(Schema::new(vec![a.clone(), a], 1).is_err());
    }
}

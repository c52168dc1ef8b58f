//! SQL queries on one run with DataFusion: the tables `games`, `moves` and `probes`, with an added column `run`.
//!
//! All parts are opened first, so that missing, damaged and newer ones are reported by name. Voided bouts are excluded and
//! the data is read-only. Rows are streamed as JSON values; above the memory limit, sorts and groups spill to disk or fail.
//! Deliberately not here: the output format.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use agon_arena::spec::Plan;
use agon_records::{Groups, Table};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{DataFrame, SQLOptions, SessionConfig, SessionContext, col, lit};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use tokio_stream::StreamExt;
use url::Url;

use crate::dataset::{Dataset, DatasetError, Part, Run};
use crate::scan::whole_table;

/// Resource limits of a query.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory in MiB for sorts, groups and joins.
    pub megabytes: usize,
    /// Number of threads.
    pub threads: NonZeroUsize,
}

/// An error of a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// From the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The query is invalid.
    #[error("{0}")]
    Query(String),
    /// The memory limit is exceeded.
    #[error("the query needs more than {megabytes} MB of memory; select less, or raise --memory")]
    Memory {
        /// The limit.
        megabytes: usize,
    },
    /// The query failed.
    #[error("the query failed: {0}; check the dataset with `agon verify`")]
    Execution(String),
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
}

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Arrow type.
    pub kind: String,
    /// Whether the type is numeric.
    pub number: bool,
}

/// A row with a value for each column; NaN and infinities are null.
pub type Row = Vec<Value>;

/// A running query: an iterator over batches of rows.
pub struct Answer {
    columns: Vec<Column>,
    stream: SendableRecordBatchStream,
    runtime: Runtime,
    limits: Limits,
}

impl Answer {
    /// Starts a query on a run.
    pub fn ask(dataset: &Dataset, run: &Run, query: &str, limits: Limits) -> Result<Answer, SqlError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(limits.threads.get())
            .build()
            .map_err(SqlError::Threads)?;
        let tables = tables(dataset, run)?;
        let stream = runtime.block_on(async {
            let context = context(&tables, run, limits)?;
            let read_only =
                SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
            context.sql_with_options(query, read_only).await?.execute_stream().await
        });
        let stream = stream.map_err(|error| classify(&error, limits))?;
        let column = |field: &Arc<Field>| Column {
            name: field.name().clone(),
            kind: field.data_type().to_string(),
            number: field.data_type().is_numeric(),
        };
        let columns = stream.schema().fields().iter().map(column).collect();
        Ok(Answer { columns, stream, runtime, limits })
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

impl Iterator for Answer {
    type Item = Result<Vec<Row>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.runtime.block_on(self.stream.next())?;
        Some(match batch {
            Ok(batch) => rows(&batch).map_err(|error| SqlError::Execution(error.to_string())),
            Err(error) => Err(classify(&error, self.limits)),
        })
    }
}

/// Lists the parts of every table and checks that each can be opened.
fn tables(dataset: &Dataset, run: &Run) -> Result<Vec<(Table, Vec<Part>)>, DatasetError> {
    let probe = matches!(run.spec()?.plan, Plan::Probe(_));
    let mut tables = Vec::new();
    for table in Table::ALL {
        // A probe has rows in `probes` only, any other run has none there.
        let parts = match (table == Table::Probes) == probe {
            true => whole_table(dataset, run, table)?,
            false => Vec::new(),
        };
        for part in &parts {
            let file = part.open()?;
            part.decode(|| Groups::open(&file, table, &["bout"]))?;
        }
        tables.push((table, parts));
    }
    Ok(tables)
}

fn context(
    tables: &[(Table, Vec<Part>)],
    run: &Run,
    limits: Limits,
) -> Result<SessionContext, DataFusionError> {
    let config =
        SessionConfig::new().with_target_partitions(limits.threads.get()).with_information_schema(true);
    let environment = RuntimeEnvBuilder::new().with_memory_limit(limits.megabytes << 20, 1.0).build_arc()?;
    let context = SessionContext::new_with_config_rt(config, environment);
    for (table, parts) in tables {
        let rows = read_parts(&context, *table, parts)?;
        let voided = run.voided.iter().map(|&bout| lit(bout)).collect::<Vec<_>>();
        let counted = if voided.is_empty() { rows } else { rows.filter(col("bout").in_list(voided, true))? };
        let view = counted.with_column("run", lit(run.id.as_str()))?.into_view();
        context.register_table(table.name(), view)?;
    }
    Ok(context)
}

/// Returns the rows of all parts of a table.
fn read_parts(context: &SessionContext, table: Table, parts: &[Part]) -> Result<DataFrame, DataFusionError> {
    // A part may lack columns that were added later; there they are null.
    let later: Vec<&str> = table.columns().filter(|column| column.later).map(|column| column.name).collect();
    let field = |field: &Arc<Field>| {
        let nullable = field.is_nullable() || later.contains(&field.name().as_str());
        field.as_ref().clone().with_nullable(nullable)
    };
    let schema = Arc::new(Schema::new(table.schema().fields().iter().map(field).collect::<Vec<_>>()));
    if parts.is_empty() {
        return context.read_table(Arc::new(MemTable::try_new(schema, vec![Vec::new()])?));
    }
    let mut files = Vec::with_capacity(parts.len());
    for part in parts {
        let file = std::path::absolute(&part.file)?;
        let url = Url::from_file_path(&file).map_err(|()| {
            DataFusionError::Execution(format!("the path {} cannot be written as a URL", file.display()))
        })?;
        files.push(ListingTableUrl::try_new(url, None)?);
    }
    let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
    let config =
        ListingTableConfig::new_with_multi_paths(files).with_listing_options(options).with_schema(schema);
    context.read_table(Arc::new(ListingTable::try_new(config)?))
}

/// Converts an error of DataFusion into one for the author of the query.
fn classify(error: &DataFusionError, limits: Limits) -> SqlError {
    let root = error.find_root();
    let message = match root {
        // The message of the wrapper is a debug dump.
        DataFusionError::SQL(parser, _) => parser.to_string(),
        root => root.message().into_owned(),
    };
    // A backtrace may follow.
    let message = message.split("\n\nbacktrace").next().unwrap_or_default();
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = message.trim_end_matches('.');
    match root {
        DataFusionError::SQL(..) => {
            let reason = message.strip_prefix("sql parser error: ").unwrap_or(message);
            SqlError::Query(format!("invalid SQL: {reason}"))
        }
        DataFusionError::SchemaError(..)
        | DataFusionError::Plan(_)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Configuration(_)
        | DataFusionError::Diagnostic(..) => SqlError::Query(query_error(message)),
        DataFusionError::ResourcesExhausted(_) => SqlError::Memory { megabytes: limits.megabytes },
        // For example a division by zero or a failed cast.
        DataFusionError::ArrowError(error, _) if is_query_error(error) => {
            SqlError::Query(message.to_string())
        }
        _ => SqlError::Execution(message.to_string()),
    }
}

/// Rewords an error message of the planner without its internal names.
fn query_error(message: &str) -> String {
    if message.starts_with("DDL not supported") || message.starts_with("DML not supported") {
        return "datasets are read-only; use select".to_string();
    }
    if message.starts_with("Statement not supported") {
        return "only queries are supported; use select".to_string();
    }
    if message.starts_with("No SQL statements") {
        return "the query is empty; use select".to_string();
    }
    if message.contains("only supports a single SQL statement") {
        return "only one statement is supported at a time".to_string();
    }
    if let Some(rest) = message.strip_prefix("No field named ") {
        let (column, hint) = rest.split_once(". ").unwrap_or((rest, ""));
        // Prefer the suggestion over the list of all columns.
        let hint = hint.split("? Valid fields").next().unwrap_or_default();
        let hint = hint.strip_prefix("Did you mean ").map_or_else(
            || hint.replacen("Valid fields are", "there are", 1),
            |name| format!("did you mean {}?", name.trim_matches(['\'', '?'])),
        );
        let separator = if hint.is_empty() { "" } else { "; " };
        return format!("there is no column `{column}`{separator}{hint}");
    }
    match message.strip_prefix("table 'datafusion.public.").and_then(|rest| rest.strip_suffix("' not found"))
    {
        Some(table) => format!("there is no table `{table}`; there are games, moves and probes"),
        None => message.to_string(),
    }
}

fn is_query_error(error: &ArrowError) -> bool {
    matches!(
        error,
        ArrowError::DivideByZero
            | ArrowError::CastError(_)
            | ArrowError::ParseError(_)
            | ArrowError::ComputeError(_)
            | ArrowError::ArithmeticOverflow(_)
    )
}

/// Converts the rows of a batch.
fn rows(batch: &RecordBatch) -> Result<Vec<Row>, ArrowError> {
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| value(column.as_ref(), row)).collect())
        .collect()
}

/// Converts a cell: numbers, lists and structs to their JSON forms, other types such as dates to text.
fn value(array: &dyn Array, row: usize) -> Result<Value, ArrowError> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(Value::Null);
    }
    let list = |items: Arc<dyn Array>| -> Result<Value, ArrowError> {
        (0..items.len())
            .map(|item| value(items.as_ref(), item))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array)
    };
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        // NaN becomes null.
        DataType::Float32 => f64::from(array.as_primitive::<Float32Type>().value(row)).into(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::List(_) => list(array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(array.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let cells = fields.iter().zip(columns);
            let cells = cells.map(|(field, column)| Ok((field.name().clone(), value(column.as_ref(), row)?)));
            Value::Object(cells.collect::<Result<Map<_, _>, ArrowError>>()?)
        }
        _ => {
            let options = FormatOptions::default();
            ArrayFormatter::try_new(array, &options)?.value(row).to_string().into()
        }
    })
}

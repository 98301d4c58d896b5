//! An encoder and its last layer as an ONNX graph (operations of version 17, f32): what ONNX Runtime and others compute without Python.
//!
//! Inputs are `input_ids`, `attention_mask` and, of BERT, `token_type_ids`, int64 `[batch, sequence]`, padded at the right. What comes out is called as by
//! `optimum`: `last_hidden_state`, `logits`, `start_logits` and `end_logits`, and `sentence_embedding` where texts are pooled.

mod message;

use std::io::{self, Write};

use anyhow::Context as _;
use batch::family::Family;
use message::{Attribute, Axis, Kind, Message};
use model::checkpoint::Whole;
use model::encoder::config::Config;
use model::encoder::pool::Pooling;

/// The version of ONNX's operations: the first that has layer norms.
const OPERATIONS: u64 = 17;
/// The version of the file format that goes with it.
const FORMAT: u64 = 8;

/// Fields of `GraphProto`.
const NODE: u64 = 1;
const NAME: u64 = 2;
const CONSTANT: u64 = 5;
const INPUT: u64 = 11;
const OUTPUT: u64 = 12;

/// A graph in the making.
struct Graph<'a> {
    whole: &'a Whole,
    nodes: Vec<Message>,
    constants: Vec<Message>,
    outputs: Vec<Message>,
    /// How many values have a name that was made up.
    values: usize,
}

/// Writes the model in a folder, read whole, with the last layer of this class of `transformers`, or pooled.
///
/// # Errors
/// When a tensor is missing, the class has no graph, or `to` refuses.
pub(super) fn write(
    to: &mut dyn Write,
    whole: &Whole,
    class: Option<&str>,
    pooling: Option<Pooling>,
) -> anyhow::Result<()> {
    let mut graph = Graph { whole, nodes: Vec::new(), constants: Vec::new(), outputs: Vec::new(), values: 0 };
    let x_bnd = graph.encoder()?;
    match class {
        None => graph.states(&x_bnd, pooling)?,
        Some("SequenceClassification") => graph.classes(&x_bnd)?,
        Some("TokenClassification") => graph.tags(&x_bnd)?,
        Some("QuestionAnswering") => graph.spans(&x_bnd)?,
        Some("MaskedLM") => graph.masked_words(&x_bnd)?,
        Some(other) => anyhow::bail!(
            "there is no graph for a last layer of {other}: export it to transformers, and from there"
        ),
    }
    Ok(graph.finish(to)?)
}

/// What published files call the parameters of an output, of one family or the other.
type Names = [&'static str; 2];

impl Graph<'_> {
    fn config(&self) -> &Config {
        &self.whole.checkpoint.config
    }

    fn is_bert(&self) -> bool {
        self.config().family == Family::Bert
    }

    /// A node with one output, which gets a name of its own.
    fn node(&mut self, operation: &str, inputs: &[&str], told: &[Attribute]) -> String {
        let name = format!("{}_{}", operation.to_lowercase(), self.values);
        self.values += 1;
        self.nodes.push(Message::node(operation, inputs, &[&name], told));
        name
    }

    /// The same with an output of this name, which the graph gives.
    fn output(&mut self, operation: &str, inputs: &[&str], told: &[Attribute], named: (&str, &[Axis])) {
        let (name, axes) = named;
        self.nodes.push(Message::node(operation, inputs, &[name], told));
        self.outputs.push(Message::value(name, Kind::Float, axes));
    }

    fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        self.constants.push(Message::floats(name, shape, values));
        name.to_owned()
    }

    fn ints(&mut self, name: &str, values: &[i64]) -> String {
        self.constants.push(Message::ints(name, &[values.len()], values));
        name.to_owned()
    }

    /// A parameter of the encoder, or of an output under one of these names.
    fn parameter(&self, name: &str) -> anyhow::Result<(Vec<usize>, Vec<f32>)> {
        let params = &self.whole.checkpoint.params;
        let tensor = match self.whole.outputs.get(name) {
            Some(tensor) => tensor.clone(),
            None => params.get(name).with_context(|| format!("the checkpoint has no {name}"))?,
        };
        Ok((tensor.dims().to_vec(), tensor.flatten_all()?.to_vec1()?))
    }

    fn weights(&mut self, name: &str) -> anyhow::Result<String> {
        let (shape, values) = self.parameter(name)?;
        Ok(self.floats(name, &shape, &values))
    }

    /// `x W^T + b`, of the layer of this name.
    fn dense(&mut self, x: &str, layer: &str) -> anyhow::Result<String> {
        let (product, bias) = (self.product(x, layer)?, self.weights(&format!("{layer}.bias"))?);
        Ok(self.node("Add", &[&product, &bias], &[]))
    }

    fn product(&mut self, x: &str, layer: &str) -> anyhow::Result<String> {
        let name = format!("{layer}.weight");
        let (shape, values) = self.parameter(&name)?;
        let [rows, columns] = shape[..] else { anyhow::bail!("{name} is no matrix") };
        let weight = self.floats(&name, &[columns, rows], &transposed(&values, columns));
        Ok(self.node("MatMul", &[x, &weight], &[]))
    }

    /// Layer norm of the layer of this name.
    fn norm(&mut self, x: &str, layer: &str) -> anyhow::Result<String> {
        let scale = self.weights(&format!("{layer}.weight"))?;
        let shift = self.weights(&format!("{layer}.bias"))?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "what is added to a variance is a small f32 wherever it is computed"
        )]
        let epsilon = Attribute::Float("epsilon", self.config().layer_norm_eps as f32);
        Ok(self.node("LayerNormalization", &[x, &scale, &shift], &[Attribute::Int("axis", -1), epsilon]))
    }

    /// `x (1 + erf(x / sqrt 2)) / 2`.
    fn gelu(&mut self, x: &str) -> String {
        let shrunk = self.node("Mul", &[x, "sqrt_half"], &[]);
        let erf = self.node("Erf", &[&shrunk], &[]);
        let shifted = self.node("Add", &[&erf, "one"], &[]);
        let doubled = self.node("Mul", &[x, &shifted], &[]);
        self.node("Mul", &[&doubled, "half"], &[])
    }

    /// The states of all tokens `[batch, sequence, hidden]`.
    fn encoder(&mut self) -> anyhow::Result<String> {
        let config = self.config().clone();
        let (heads, d) = (config.num_attention_heads, config.hidden_size);
        for (name, value) in [
            ("one", 1.0),
            ("half", 0.5),
            ("sqrt_half", std::f32::consts::FRAC_1_SQRT_2),
            ("lowest", f32::MIN),
        ] {
            self.floats(name, &[], &[value]);
        }
        #[expect(clippy::cast_precision_loss, reason = "a head's width is far below 2^24")]
        let scale = ((d / heads) as f32).sqrt().recip();
        self.floats("scale", &[], &[scale]);
        let signed = |size: usize| i64::try_from(size);
        self.ints("split_heads", &[0, 0, signed(heads)?, signed(d / heads)?]);
        self.ints("join_heads", &[0, 0, signed(d)?]);
        self.ints("mask_axes", &[1, 2]);
        let mut x_bnd = self.embeddings()?;
        // 0 where a token may be looked at, the lowest number where not.
        let mask = self.node("Cast", &["attention_mask"], &[Attribute::Int("to", Kind::Float as i64)]);
        let mask = self.node("Unsqueeze", &[&mask, "mask_axes"], &[]);
        let hidden = self.node("Sub", &["one", &mask], &[]);
        let mask = self.node("Mul", &[&hidden, "lowest"], &[]);
        for layer in 0..config.num_hidden_layers {
            x_bnd = self.layer(&x_bnd, &mask, &format!("encoder.layer.{layer}"))?;
        }
        Ok(x_bnd)
    }

    fn embeddings(&mut self) -> anyhow::Result<String> {
        let (words, positions) = (
            self.weights("embeddings.word_embeddings.weight")?,
            self.weights("embeddings.position_embeddings.weight")?,
        );
        let segments = self.weights("embeddings.token_type_embeddings.weight")?;
        let tokens = self.node("Gather", &[&words, "input_ids"], &[]);
        let segment_ids =
            if self.is_bert() { "token_type_ids".to_owned() } else { self.ints("first_segment", &[0]) };
        let segments = self.node("Gather", &[&segments, &segment_ids], &[]);
        // As many positions as the rows have tokens; those of RoBERTa that no token has are not in the table.
        let shape = self.node("Shape", &["input_ids"], &[Attribute::Int("start", 1)]);
        let (zero, first) = (self.ints("zero", &[0]), self.ints("first_axis", &[0]));
        let positions = self.node("Slice", &[&positions, &zero, &shape, &first], &[]);
        let sum = self.node("Add", &[&tokens, &segments], &[]);
        let sum = self.node("Add", &[&sum, &positions], &[]);
        self.norm(&sum, "embeddings.LayerNorm")
    }

    fn layer(&mut self, x_bnd: &str, mask: &str, name: &str) -> anyhow::Result<String> {
        let mut heads = |of: &str, order: [i64; 4]| -> anyhow::Result<String> {
            let dense = self.dense(x_bnd, &format!("{name}.attention.self.{of}"))?;
            let split = self.node("Reshape", &[&dense, "split_heads"], &[]);
            Ok(self.node("Transpose", &[&split], &[Attribute::Ints("perm", order.to_vec())]))
        };
        let (queries, keys, values) =
            (heads("query", [0, 2, 1, 3])?, heads("key", [0, 2, 3, 1])?, heads("value", [0, 2, 1, 3])?);
        let scores = self.node("MatMul", &[&queries, &keys], &[]);
        let scores = self.node("Mul", &[&scores, "scale"], &[]);
        let scores = self.node("Add", &[&scores, mask], &[]);
        let shares = self.node("Softmax", &[&scores], &[Attribute::Int("axis", -1)]);
        let seen = self.node("MatMul", &[&shares, &values], &[]);
        let seen = self.node("Transpose", &[&seen], &[Attribute::Ints("perm", vec![0, 2, 1, 3])]);
        let seen = self.node("Reshape", &[&seen, "join_heads"], &[]);
        let attended = self.dense(&seen, &format!("{name}.attention.output.dense"))?;
        let sum = self.node("Add", &[&attended, x_bnd], &[]);
        let y_bnd = self.norm(&sum, &format!("{name}.attention.output.LayerNorm"))?;
        let wide = self.dense(&y_bnd, &format!("{name}.intermediate.dense"))?;
        let wide = self.gelu(&wide);
        let narrow = self.dense(&wide, &format!("{name}.output.dense"))?;
        let sum = self.node("Add", &[&narrow, &y_bnd], &[]);
        self.norm(&sum, &format!("{name}.output.LayerNorm"))
    }

    /// The states themselves, and their pool.
    fn states(&mut self, x_bnd: &str, pooling: Option<Pooling>) -> anyhow::Result<()> {
        let d = Axis::Of(self.config().hidden_size);
        let [batch, sequence] = [Axis::Any("batch"), Axis::Any("sequence")];
        self.output("Identity", &[x_bnd], &[], ("last_hidden_state", &[batch, sequence, d]));
        let pooled: (&str, &[Axis]) = ("sentence_embedding", &[batch, d]);
        match pooling {
            None => {}
            Some(Pooling::Cls) => {
                let first = self.first(x_bnd);
                self.output("Identity", &[&first], &[], pooled);
            }
            Some(Pooling::Mean) => {
                let (mask, tokens) = self.shown();
                let shown = self.node("Mul", &[x_bnd, &mask], &[]);
                let sum = self.node("ReduceSum", &[&shown, "tokens"], &[Attribute::Int("keepdims", 0)]);
                self.output("Div", &[&sum, &tokens], &[], pooled);
            }
            Some(Pooling::Max) => {
                let (mask, _) = self.shown();
                let hidden = self.node("Sub", &["one", &mask], &[]);
                let low = self.node("Mul", &[&hidden, "lowest"], &[]);
                let shown = self.node("Add", &[x_bnd, &low], &[]);
                let told = [Attribute::Int("keepdims", 0), Attribute::Ints("axes", vec![1])];
                self.output("ReduceMax", &[&shown], &told, pooled);
            }
            Some(Pooling::LearnedPooler) => {
                let first = self.first(x_bnd);
                let dense = self.dense(&first, "pooler.dense")?;
                self.output("Tanh", &[&dense], &[], pooled);
            }
            Some(Pooling::LearnedAttn) => {
                anyhow::bail!(
                    "pooling learned_attn belongs to a training's outputs: use cls, mean, max or learned_pooler"
                )
            }
        }
        Ok(())
    }

    /// 1 for each token that is shown `[batch, sequence, 1]`, and how many of a row these are `[batch, 1]`.
    fn shown(&mut self) -> (String, String) {
        self.ints("last_axis", &[2]);
        self.ints("tokens", &[1]);
        let mask = self.node("Cast", &["attention_mask"], &[Attribute::Int("to", Kind::Float as i64)]);
        let tokens = self.node("ReduceSum", &[&mask, "tokens"], &[Attribute::Int("keepdims", 1)]);
        (self.node("Unsqueeze", &[&mask, "last_axis"], &[]), tokens)
    }

    /// The first token's state `[batch, hidden]`.
    fn first(&mut self, x_bnd: &str) -> String {
        self.constants.push(Message::ints("first_token", &[], &[0]));
        self.node("Gather", &[x_bnd, "first_token"], &[Attribute::Int("axis", 1)])
    }

    /// How many numbers the layer of this name gives.
    fn width(&self, layer: &str) -> anyhow::Result<Axis> {
        Ok(Axis::Of(self.parameter(&format!("{layer}.bias"))?.0.iter().product()))
    }

    fn logits(&mut self, x: &str, layer: &str, axes: &[Axis]) -> anyhow::Result<()> {
        let (product, bias) = (self.product(x, layer)?, self.weights(&format!("{layer}.bias"))?);
        self.output("Add", &[&product, &bias], &[], ("logits", axes));
        Ok(())
    }

    fn classes(&mut self, x_bnd: &str) -> anyhow::Result<()> {
        // BERT's classifier may have a pooler of its own in front of it; else that is the encoder's.
        let own = "bert.pooler.dense";
        let has_own = self.whole.outputs.contains_key(&format!("{own}.weight"));
        let (pooler, layer) = match (self.is_bert(), has_own) {
            (true, true) => (own, "classifier"),
            (true, false) => ("pooler.dense", "classifier"),
            (false, _) => ("classifier.dense", "classifier.out_proj"),
        };
        let first = self.first(x_bnd);
        let dense = self.dense(&first, pooler)?;
        let pooled = self.node("Tanh", &[&dense], &[]);
        let axes = [Axis::Any("batch"), self.width(layer)?];
        self.logits(&pooled, layer, &axes)
    }

    fn tags(&mut self, x_bnd: &str) -> anyhow::Result<()> {
        let axes = [Axis::Any("batch"), Axis::Any("sequence"), self.width("classifier")?];
        self.logits(x_bnd, "classifier", &axes)
    }

    fn spans(&mut self, x_bnd: &str) -> anyhow::Result<()> {
        let both = self.dense(x_bnd, "qa_outputs")?;
        let axes = [Axis::Any("batch"), Axis::Any("sequence")];
        for (at, name) in [(0, "start_logits"), (1, "end_logits")] {
            self.constants.push(Message::ints(&format!("column_{at}"), &[], &[at]));
            let column = format!("column_{at}");
            self.output("Gather", &[&both, &column], &[Attribute::Int("axis", 2)], (name, &axes));
        }
        Ok(())
    }

    fn masked_words(&mut self, x_bnd: &str) -> anyhow::Result<()> {
        const DENSE: Names = ["cls.predictions.transform.dense", "lm_head.dense"];
        const NORM: Names = ["cls.predictions.transform.LayerNorm", "lm_head.layer_norm"];
        const BIAS: Names = ["cls.predictions.bias", "lm_head.bias"];
        let of = usize::from(!self.is_bert());
        let dense = self.dense(x_bnd, DENSE[of])?;
        let wide = self.gelu(&dense);
        let normed = self.norm(&wide, NORM[of])?;
        // The decoder is the table of token embeddings, which is there already.
        let decoder = self.node(
            "Transpose",
            &["embeddings.word_embeddings.weight"],
            &[Attribute::Ints("perm", vec![1, 0])],
        );
        let product = self.node("MatMul", &[&normed, &decoder], &[]);
        let bias = self.weights(BIAS[of])?;
        let axes = [Axis::Any("batch"), Axis::Any("sequence"), Axis::Of(self.config().vocab_size)];
        self.output("Add", &[&product, &bias], &[], ("logits", &axes));
        Ok(())
    }

    fn finish(self, to: &mut dyn Write) -> io::Result<()> {
        let axes = [Axis::Any("batch"), Axis::Any("sequence")];
        let mut inputs = vec!["input_ids", "attention_mask"];
        if self.is_bert() {
            inputs.push("token_type_ids");
        }
        let of = |field: u64| move |message: Message| (field, message);
        let inputs = inputs.into_iter().map(|name| Message::value(name, Kind::Int64, &axes));
        // `producer_name` and `opset_import`.
        let head = [(2, Message::of_text("engraft")), (8, Message::operations(OPERATIONS))];
        let graph: Vec<_> = (self.nodes.into_iter().map(of(NODE)))
            .chain([(NAME, Message::of_text("engraft"))])
            .chain(self.constants.into_iter().map(of(CONSTANT)))
            .chain(inputs.map(of(INPUT)))
            .chain(self.outputs.into_iter().map(of(OUTPUT)))
            .collect();
        message::model(to, &head, FORMAT, &graph)
    }
}

/// A matrix of rows of this many columns, column by column.
fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| values.iter().skip(column).step_by(columns).copied()).collect()
}

//! What a model on the device says of rows: a pass that keeps nothing, and is waited for.

use candle_core::{Device, Tensor};

use super::args::Address;
use super::encoder::{Asks, Keep, Pass};
use super::feed::Feed;
use super::model::{Fed, Model, flat};
use super::outputs::{Asking, Counting, Question, Wanted};
use crate::Error;
use crate::encoder::tokens::Tokens;
use crate::head::mask::Mask;
use crate::output::Batch;

impl Model {
    /// The last hidden states `[n, d]` of tokens in main memory, and the logits `[m, c]` of some tasks' rows or tokens; heads' contexts are multiplied by gates,
    /// if there are some.
    ///
    /// # Errors
    /// When memory is lacking or the driver refuses a launch.
    pub(crate) fn answer(
        &mut self,
        tokens: &Tokens,
        questions: &[Question<'_>],
        gates: Option<&Mask>,
    ) -> Result<(Tensor, Vec<Tensor>), Error> {
        let (mut feed, gates_lh) = (Feed::default(), gates.map(flat));
        let (gates_lh, of_gates) = (gates_lh.as_deref(), Asks::Nothing);
        let pass = Pass { dropout: None, tables: [false; 3], gates_lh, of_gates };
        let encoder = self.encoder.feed(&mut feed, &self.config, tokens, pass)?;
        let outputs = questions.iter().map(|of| self.outputs.ask(&mut feed, tokens, *of));
        let fed = Fed { encoder, outputs: outputs.collect::<Result<_, _>>()? };
        let (fed, memory, base) = self.ready(&feed, fed, Keep::Nothing)?;
        self.forward(&fed, base, &memory, None)?;
        let [n, d] = [tokens.count(), self.encoder.sizes.d];
        let hidden = Tensor::from_vec(self.read(memory.encoder.hidden(), n * d)?, (n, d), &Device::Cpu)?;
        let mut logits = vec![];
        for (fed, memory) in fed.outputs.iter().zip(&memory.outputs) {
            let all = self.read(memory.logits, fed.m * fed.stride)?;
            let all = Tensor::from_vec(all, (fed.m, fed.stride), &Device::Cpu)?;
            logits.push(all.narrow(1, 0, fed.c)?);
        }
        Ok((hidden, logits))
    }

    /// The gradients `[n, h]` of each token's private copy of every layer's gates, which all are those given, under the sum of a batch's losses: each of a row, a
    /// token or a group counts once.
    ///
    /// # Errors
    /// When the batch does not fit, memory is lacking or the driver refuses a launch.
    pub(crate) fn gate_gradients(
        &mut self,
        tokens: &Tokens,
        batch: &Batch,
        gates: &Mask,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let (mut feed, gates_lh) = (Feed::default(), flat(gates));
        let (gates_lh, of_gates) = (Some(&gates_lh[..]), Asks::Gradients);
        let pass = Pass { dropout: None, tables: [false; 3], gates_lh, of_gates };
        let encoder = self.encoder.feed(&mut feed, &self.config, tokens, pass)?;
        let asking = Asking { at: 0, batch, counting: Counting::Once, wanted: Wanted::Gradient };
        let outputs = vec![self.outputs.feed(&mut feed, tokens, asking, None)?];
        let (fed, memory, base) = self.ready(&feed, Fed { encoder, outputs }, Keep::All)?;
        let (_losses, slot) = self.losses()?;
        self.forward(&fed, base, &memory, Some(slot))?;
        self.backward(&fed, base, &memory)?;
        let count = tokens.count() * self.encoder.sizes.heads;
        memory.encoder.gates().map(|each| self.read(each, count)).collect()
    }

    /// Numbers of the arena of activations, which are f32 in a model that answers.
    fn read(&self, at: Address, count: usize) -> Result<Vec<f32>, Error> {
        let mut numbers = vec![0.0_f32; count];
        self.memory.get(at, &mut numbers)?;
        Ok(numbers)
    }
}

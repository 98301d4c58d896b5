//! What a model on the device says of rows: a pass that keeps nothing, and is waited for.

use candle_core::{Device, Tensor};

use super::args::Address;
use super::encoder::{Keep, Pass};
use super::feed::{Base, Feed};
use super::tape::{Fed, Model, flat};
use crate::Error;
use crate::encoder::tokens::Tokens;
use crate::head::mask::Mask;

impl Model {
    /// The last hidden states `[n, d]` of tokens in main memory, and the logits `[m, c]` of some tasks' rows or tokens; heads' contexts are multiplied by gates,
    /// if there are some.
    ///
    /// # Errors
    /// When memory is lacking or the driver refuses a launch.
    pub(crate) fn answer(
        &mut self,
        tokens: &Tokens,
        tasks: &[usize],
        gates: Option<&Mask>,
    ) -> Result<(Tensor, Vec<Tensor>), Error> {
        let (mut feed, gates_lh) = (Feed::default(), gates.map(flat));
        let pass = Pass { dropout: None, tables: [false; 3], gates_lh: gates_lh.as_deref() };
        let encoder = self.encoder.feed(&mut feed, &self.config, tokens, pass)?;
        let outputs = tasks.iter().map(|task| self.outputs.ask(&mut feed, tokens, *task));
        let fed = [Fed { encoder, outputs: outputs.collect::<Result<_, _>>()? }];
        let memory = self.memory(&fed, Keep::Nothing)?;
        let base = Base(self.input.fit(&self.cuda.stream, feed.bytes().len())?);
        self.input.put(feed.bytes())?;
        let ([fed], [memory]) = (&fed, &memory[..]) else {
            return Err(Error::Misfit("no memory; report it".to_owned()));
        };
        self.forward(fed, base, memory, None)?;
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

    /// Numbers of the arena of activations, which are f32 in a model that answers.
    fn read(&self, at: Address, count: usize) -> Result<Vec<f32>, Error> {
        let mut numbers = vec![0.0_f32; count];
        self.memory.get(at, &mut numbers)?;
        Ok(numbers)
    }
}

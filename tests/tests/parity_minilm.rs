//! A published checkpoint, all-MiniLM-L6-v2, against golden numbers computed with `transformers` (part j): its tokens and its hidden states.
//! `ENGRAFT_MINILM` names its unpacked folder; without it the test says that it skips.

use anyhow::{Context, Result, ensure};
use batch::Targets;
use batch::task::Task;
use candle_core::{D, Device, Tensor};
use engraft_tests::golden::{self, Golden, folder, json, minilm};
use model::checkpoint;
use model::encoder::pool::{Pool, Pooling};
use model::encoder::{Encoder, Pass};
use tasks::token::encode::{Case, Vocabulary};

#[test]
fn a_published_checkpoint_says_what_transformers_says() -> Result<()> {
    let Some(minilm) = minilm() else { return Ok(()) };
    ensure!(folder().join("j_minilm.json").exists(), "{}: no part j", folder().display());
    let mut golden = Golden::open("j_minilm")?;
    let loaded = checkpoint::load(&minilm, &Device::Cpu)?;
    ensure!(loaded.fresh.is_empty(), "drawn anew: {:?}", loaded.fresh);
    let (config, params) = (loaded.config, loaded.params);
    let encoder = Encoder::new(&config, &params)?;
    let batch = golden.batch("", Task::Relation, Targets::Classes(vec![]))?;
    let tokens = golden::tokens(&[&batch], &config)?;
    let hidden = encoder.forward(&config, &tokens, &Pass::PLAIN)?;
    let real: Vec<u32> =
        (0..).zip(&batch.attention_mask).filter_map(|(cell, mask)| (*mask == 1).then_some(cell)).collect();
    let last = hidden.last().context("an encoder has hidden states")?;
    for (name, x_nd) in [
        ("hidden_0_embeddings_masked", &hidden[0]),
        ("hidden_3_masked", &hidden[3]),
        ("last_hidden_state_masked", last),
    ] {
        let expected = golden.get(name)?.flatten(0, 1)?;
        let expected = expected.index_select(&Tensor::new(real.as_slice(), &Device::Cpu)?, 0)?;
        golden.compare(name, x_nd, &expected)?;
    }
    let pooler = Pool::new(Pooling::LearnedPooler, &params, "")?;
    golden.compare_all("pooler_output", &pooler.forward(last, &tokens.spans)?)?;
    let mean_bd = Pool::new(Pooling::Mean, &params, "")?.forward(last, &tokens.spans)?;
    let length_b1 = mean_bd.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?;
    golden.compare_all("mean_pooled_l2_normalised", &mean_bd.broadcast_div(&length_b1)?)?;
    golden.complete(|name| !["input_ids", "attention_mask", "token_type_ids"].contains(&name));
    Ok(())
}

#[test]
fn its_tokenizer_gives_the_tokens_that_transformers_gives() -> Result<()> {
    let Some(minilm) = minilm() else { return Ok(()) };
    let said = json("j_minilm")?;
    let sentences: Vec<String> = serde_json::from_value(said["sentences"].clone())?;
    let expected: Vec<Vec<String>> = serde_json::from_value(said["tokens"].clone())?;
    for file in ["tokenizer.json", "vocab.txt"] {
        let vocabulary = Vocabulary::load(&minilm.join(file), Case::Uncased)?;
        for (sentence, tokens) in sentences.iter().zip(&expected) {
            let ids = vocabulary.encode(sentence)?;
            let found: Vec<String> = ids.iter().filter_map(|&id| vocabulary.token(id)).collect();
            let own = |token: &&String| !["[CLS]", "[SEP]", "[PAD]"].contains(&token.as_str());
            let tokens: Vec<String> = tokens.iter().filter(own).cloned().collect();
            ensure!(found == tokens, "{file}: {found:?}, expected {tokens:?}");
        }
    }
    Ok(())
}

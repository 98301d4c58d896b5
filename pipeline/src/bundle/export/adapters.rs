//! Adapters alone, as PEFT reads them, with a card that says what they are to be added to.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use model::checkpoint::adapters::{ADAPTERS_FILE, ADAPTERS_WEIGHTS_FILE};

use super::{card, copy, put};

/// What PEFT calls the files.
const FILES: [(&str, &str); 2] =
    [(ADAPTERS_FILE, "adapter_config.json"), (ADAPTERS_WEIGHTS_FILE, "adapter_model.safetensors")];

/// How a card of adapters begins.
const HEAD: &str = "\
---
library_name: peft
license: other
license_name: by-training-data
tags:
- engraft
- lora
- biomedical
---

# Adapters

Low-rank adapters (LoRA) of an encoder, trained by engraft. They are added to the weights that they began with, which are named below; with others they mean nothing.

## How to load it

```python
from peft import PeftModel
from transformers import AutoModel

model = PeftModel.from_pretrained(AutoModel.from_pretrained(BASE), FOLDER)
```

`FOLDER` is the folder of this file, `BASE` that of these weights. They are adapters of `AutoModel`: classes with an output, such as `AutoModelForMaskedLM`, keep the encoder under
another name, where PEFT finds none of them and says so in a warning alone.

";

/// Copies a model's adapters into a folder under PEFT's names.
///
/// # Errors
/// When it has none, or the disk refuses.
pub(super) fn write(model: &Path, out: &Path) -> anyhow::Result<()> {
    for (name, theirs) in FILES {
        let path = model.join(name);
        ensure!(
            path.is_file(),
            "{}: it has no {name}: adapters are there where retrain.lora, or row `lora` of a grafting, trained them",
            model.display()
        );
        copy(&path, &out.join(theirs))?;
    }
    let path = model.join(card::FILE);
    let about = match path.is_file() {
        true => fs::read_to_string(&path).with_context(|| path.display().to_string())?,
        false => String::new(),
    };
    put(out, card::FILE, format!("{HEAD}{}", card::of_training(&about)).as_bytes())
}

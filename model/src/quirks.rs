//! Where published codes do otherwise than their papers, or than PyTorch: each is a setting beside what it changes, off unless a table of ours says otherwise, and
//! none exists that is not in this list.
//!
//! | setting | what it reproduces |
//! |---|---|
//! | [`Mode::Repo`](crate::attention::label::Mode) | code of Wang et al. 2020 (label embeddings): scores of labels are not divided by the square root of a head's width, and their loss is a mean |
//! | [`Method::Accumulated`](crate::head::importance::Method) | KIMERA's script: gradients of the gates are never cleared between batches |
//! | [`Method::TokenLevel`](crate::head::importance::Method) | code of Michel et al. 2019: importance by token, the last layer divided by samples |
//! | [`bert::Kind`](crate::optim::bert::Kind) | MT-BERT's Adamax (mt-dnn), `BertAdam` of pytorch-pretrained-BERT, and Michel's variant whose kept heads do not decay |
//! | [`schedule::ReferencePace`](crate::optim::schedule::ReferencePace) | `warmup_linear` of pytorch-pretrained-BERT up to 0.6.1 and since 0.6.2; rates counted from 0 |
//! | [`OutputDropout::Variational`](crate::output::OutputDropout) | MT-BERT: dropout shared by the tokens of a row before an output of tags |
//! | [`Skip::PreAdd`](crate::attention::kam::Skip), [`Merge::Mean`](crate::attention::kam::Merge) | KAM-BERT's parent (evolving attention) and the paper's ablation |
//! | [`Tokens::seen`](crate::encoder::tokens::Tokens) | codes whose rows carry padding that is read |

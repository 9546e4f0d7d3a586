//! Damages of files of weights.

use std::fs;

use serde_json::json;

use super::damage::{Case, FILE, INDEX, SHARD, UP, cut, edit, header, json, length, number, shift};

pub(super) const WEIGHTS: &[Case] = &[
    (
        "no weights",
        |at| fs::remove_file(at.join(FILE)).unwrap(),
        &[FILE, "No such file"],
    ),
    (
        "an empty file",
        |at| cut(at, 0),
        &[FILE, "truncated: 0 bytes"],
    ),
    (
        "a header cut short",
        |at| cut(at, 100),
        &[FILE, "truncated"],
    ),
    (
        "data cut short",
        |at| cut(at, length(at) - 3),
        &[FILE, "truncated", "`model.norm.weight`"],
    ),
    (
        "bytes too many",
        |at| edit(at, |bytes| bytes.push(0)),
        &[FILE, "1 bytes follow"],
    ),
    (
        "a header longer than the file",
        |at| {
            edit(at, |bytes| {
                bytes[..8].copy_from_slice(&(1_u64 << 40).to_le_bytes())
            })
        },
        &[FILE, "1099511627776"],
    ),
    (
        "a header of noise",
        |at| edit(at, |bytes| bytes[8..40].fill(0xfe)),
        &[FILE, "not valid JSON"],
    ),
    (
        "a tensor beyond the data",
        |at| header(at, |header| shift(header, "model.norm.weight", 4096)),
        &[FILE, "`model.norm.weight`", "begins at byte"],
    ),
    (
        "tensors that overlap",
        |at| header(at, |header| shift(header, UP, -64)),
        &[FILE, UP, "inside `model.layers.1.mlp.gate_proj.weight`"],
    ),
    (
        "a tensor that ends before it begins",
        |at| header(at, |header| header[UP]["data_offsets"] = json!([512, 0])),
        &[FILE, UP, "before it begins"],
    ),
    (
        "a shape that the data do not fill",
        |at| header(at, |header| header[UP]["shape"] = json!([7])),
        &[FILE, UP, "[7]", "takes 28 bytes"],
    ),
    (
        "a shape larger than any memory",
        |at| {
            header(at, |header| {
                header[UP]["shape"] = json!([1_u64 << 62, 1_u64 << 62])
            })
        },
        &[FILE, UP, "larger than any memory"],
    ),
    (
        "a dtype that nobody knows",
        |at| header(at, |header| header[UP]["dtype"] = json!("F99")),
        &[FILE, UP, "\"F99\""],
    ),
    (
        "integers for weights",
        |at| header(at, |header| header[UP]["dtype"] = json!("I32")),
        &[FILE, UP, "I32"],
    ),
    (
        "a tied model with an output projection of its own",
        |at| {
            let mut embedding = (0, 0);
            header(at, |header| {
                let tensor = header["model.embed_tokens.weight"].clone();
                let offset = |end: usize| tensor["data_offsets"][end].as_u64().unwrap();
                embedding = (offset(0) as usize, offset(1) as usize);
                let ends = header.as_object().unwrap().values();
                let ends = ends.filter_map(|tensor| tensor["data_offsets"][1].as_u64());
                let end = ends.max().unwrap();
                header["lm_head.weight"] = tensor.clone();
                let size = offset(1) - offset(0);
                header["lm_head.weight"]["data_offsets"] = json!([end, end + size]);
            });
            edit(at, |bytes| {
                bytes.extend(std::iter::repeat_n(0, embedding.1 - embedding.0))
            });
        },
        &[FILE, "`lm_head.weight`", "tie_word_embeddings"],
    ),
    (
        "a tensor under another name",
        |at| {
            header(at, |header| {
                let tensor = header.as_object_mut().unwrap().remove(UP).unwrap();
                header["model.layers.1.mlp.op_proj.weight"] = tensor;
            });
        },
        &[
            FILE,
            "`model.layers.1.mlp.op_proj.weight`",
            "not part of a model",
        ],
    ),
    (
        "a layer too few",
        |at| {
            json(at, "config.json", |config| {
                config["num_hidden_layers"] = json!(3)
            })
        },
        &[FILE, "`model.layers.2.", "missing"],
    ),
    (
        "a layer too many",
        |at| {
            json(at, "config.json", |config| {
                config["num_hidden_layers"] = json!(1)
            })
        },
        &[FILE, "`model.layers.1.", "not part of a model"],
    ),
    (
        "other sizes",
        |at| {
            json(at, "config.json", |config| {
                config["intermediate_size"] = json!(40)
            })
        },
        &[
            FILE,
            "`model.layers.0.mlp.down_proj.weight` has shape [16, 48], but [16, 40]",
        ],
    ),
    (
        "a NaN",
        |at| number(at, f32::NAN),
        &[FILE, UP, "NaN", "element 5"],
    ),
    (
        "an infinity",
        |at| number(at, f32::NEG_INFINITY),
        &[FILE, UP, "-inf", "element 5"],
    ),
    (
        "a pointer of Git LFS",
        |at| {
            fs::write(
                at.join(FILE),
                "version https://git-lfs.github.com/spec/v1\n",
            )
            .unwrap()
        },
        &[FILE, "git lfs pull"],
    ),
    (
        "pickled weights",
        |at| fs::rename(at.join(FILE), at.join("pytorch_model.bin")).unwrap(),
        &["pytorch_model.bin", "save_pretrained"],
    ),
];

pub(super) const SHARDS: &[Case] = &[
    (
        "a shard that is not there",
        |at| fs::remove_file(at.join(SHARD)).unwrap(),
        &[SHARD, "missing", INDEX],
    ),
    (
        "a shard cut short",
        |at| {
            let bytes = fs::read(at.join(SHARD)).unwrap();
            fs::write(at.join(SHARD), &bytes[..bytes.len() / 2]).unwrap();
        },
        &[SHARD, "truncated"],
    ),
    (
        "an index that names a file nobody has",
        |at| {
            json(at, INDEX, |index| {
                index["weight_map"][UP] = json!("other.safetensors")
            })
        },
        &["other.safetensors", "missing"],
    ),
    (
        "an index that leads out of the directory",
        |at| {
            json(at, INDEX, |index| {
                index["weight_map"][UP] = json!("../own.safetensors")
            })
        },
        &[INDEX, UP, "../own.safetensors"],
    ),
    (
        "an index without places",
        |at| json(at, INDEX, |index| index["weight_map"] = json!({})),
        &[INDEX, "weight_map"],
    ),
    (
        "an index that is no JSON",
        |at| fs::write(at.join(INDEX), "{").unwrap(),
        &[INDEX, "not valid JSON"],
    ),
    (
        "a tensor in two shards",
        |at| {
            fs::copy(at.join(SHARD), at.join("again.safetensors")).unwrap();
            json(at, INDEX, |index| {
                index["weight_map"]["again"] = json!("again.safetensors")
            });
        },
        &["in another file of this model already"],
    ),
    (
        "a tensor that no shard holds",
        |at| {
            json(at, "config.json", |config| {
                config["tie_word_embeddings"] = json!(false)
            })
        },
        &[INDEX, "`lm_head.weight` is missing"],
    ),
];

"""What every task is: a head on a backbone, with raw text in and answers out."""

import dataclasses
from typing import Any

import keras

from kbert.backbone import frozen_paths
from kbert.preprocessing.tf_batches import untuned
from kbert.tasks import compiling, feeding, fitting, growing, lora, replicas, saving
from kbert.training.optimizer import AdamW


class BertTask(keras.Model):
    """A Keras functional model over one `BertBackbone` and one `BertPreprocessor`.

    `fit`, `evaluate` and `predict` take raw text, ready arrays or a dataset of either;
    loss, metrics and `predict` see logits. Without `compile`, `fit` uses `kbert.AdamW`
    with linear warm-up over a tenth of the steps and linear decay to 0 (the paper's
    appendix A.3), fresh at each `fit`.

    The abstract class: a subclass builds the functional model, passes it to
    `__init__`, compiles, and defines the methods down to `hugging_face_head`; those
    below have a default. (Keras makes instances of every base of a functional model, so
    `abc` cannot be used.)

    Attributes:
        optional_inputs: keys of a call's dictionary that may be absent.
        uses_pooler: whether the backbone's pooler is part of the task.
        is_served: whether `export` can write the task, which then has a method
            `serving_outputs`: from logits to {name: tensor} on the TensorFlow backend.
        behind_end: what `predict` writes behind the outputs of a dataset's batches that
            are narrower than others; None where all have one shape.
        preset_arguments: names of the class's own arguments of `from_preset`.
    """

    optional_inputs = ("first_positions",)
    uses_pooler = True
    is_served = False
    behind_end: float | None = None
    preset_arguments: tuple[str, ...] = ("long_text",)

    def encode_targets(self, y, count, *, training):
        """Returns the targets `y` of `count` texts as the array that the loss takes."""
        raise _abstract(self)

    def default_loss(self):
        """Returns the loss of the paper for this task, on logits."""
        raise _abstract(self)

    def default_metrics(self):
        """Returns fresh metrics for this task, on logits."""
        raise _abstract(self)

    def head_weights(self):
        """Returns {path of `checkpoints/names.py`: variable} of the head."""
        raise _abstract(self)

    def hugging_face_head(self):
        """Returns the head's keys of transformers' `config.json`."""
        raise _abstract(self)

    @classmethod
    def arguments_of(cls, parts, asked):
        """Returns the constructor's own arguments, and how the preset's head differs.

        Args:
            parts: what the preset says, `saving.PresetParts`.
            asked: {name: value} of `preset_arguments`, None where nobody asked.
        """
        return asked, ""

    def class_indices(self, class_weight) -> dict:
        """Returns `class_weight` with class indices as keys; refuses by default."""
        raise ValueError(
            f"A {type(self).__name__} has no classes to weigh. Use `sample_weight`. "
            f"Received: class_weight={class_weight!r}."
        )

    def preset_metadata(self):
        """Returns what `kbert.json` says of the task beside its name."""
        return {}

    def preset_files(self):
        """Returns {name: content} of further files of a preset."""
        return {}

    def read(self, x, y, sample_weight, *, training, targets=True):
        """Returns raw input or ready arrays as one of `tasks.feeds`; see `feeding`."""
        return feeding.read(self, x, y, sample_weight, training, targets)

    def weigh_classes(self, data, class_weight):
        """Returns the data, and what Keras takes as `class_weight` beside them."""
        return data, self.class_indices(class_weight)

    def __init__(self, inputs, outputs, backbone, preprocessor, **kwargs):
        """Makes the functional model, then attaches its parts."""
        saving.check_parts(type(self), backbone.config, preprocessor)
        super().__init__(inputs, outputs, **kwargs)
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.lora_rank, self.provenance = None, {}

    def __call__(self, inputs, *args, **kwargs):
        """Runs the model on a dictionary; `first_positions` may be absent in it."""
        return super().__call__(feeding.called_with(self, inputs), *args, **kwargs)

    def call(self, inputs, training=None, mask=None):
        """Runs the functional model; see `__call__`."""
        return super().call(feeding.called_with(self, inputs), training, mask)

    def compute_output_spec(self, inputs, training=None, mask=None):
        """Returns the symbolic output, for a model that contains this one."""
        inputs = feeding.symbols(self, inputs)
        return super().compute_output_spec(inputs, training, mask)

    # Training, evaluation, prediction ------------------------------------------------

    def compile(
        self,
        optimizer="auto",
        loss="auto",
        metrics="auto",
        *,
        learning_rate=5e-5,
        rows="auto",
        **kwargs,
    ):
        """Chooses optimizer, loss and metrics; "auto" leaves the choice to kbert.

        Args:
            optimizer: a Keras optimizer; "auto" is a new `kbert.AdamW` for each `fit`.
            loss: a loss on logits; "auto" is the task's.
            metrics: a list of metrics on logits; "auto" is the task's, and "accuracy"
                in a list its accuracy.
            learning_rate: peak of the automatic schedule; the paper takes the best
                of 5e-5, 4e-5, 3e-5 and 2e-5.
            rows: "packed" for several texts a row, which computes the same without
                padding; "single" for one; "auto" for what costs less.
            **kwargs: the rest of `keras.Model.compile`.

        Raises:
            ValueError: if the loss or a metric takes probabilities, or `rows` is
                unknown.
        """
        self.choices = compiling.chosen(
            self, optimizer, loss, metrics, learning_rate, rows, kwargs
        )
        # `fit` makes the automatic one, knowing the steps.
        self.compile_with(None if self.choices.own_optimizer else optimizer)

    def get_compile_config(self):
        """Returns what `compile` was given, and what was left to kbert."""
        kept = dataclasses.asdict(dataclasses.replace(self.choices, arguments={}))
        return {**super().get_compile_config(), "automatic": kept}

    def compile_from_config(self, config):
        """Compiles as `get_compile_config` described."""
        compiling.compile_from_config(self, config)

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose: Any = "auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_steps=None,
        validation_batch_size=None,
        validation_freq=1,
    ):
        """Trains, as `keras.Model.fit`, on raw text, ready arrays or a dataset.

        Args:
            x: texts (list, tuple, array, pandas Series); a pair `(firsts, seconds)` or
                `{"first": …, "second": …}`; a dictionary of ready arrays; or a dataset
                (tf.data, PyDataset, DataLoader, generator) of batches of any of these.
            y: targets, one a text; None where `x` is a dataset, which holds them.
            batch_size: texts a step, 32 by default. A dataset has its own.
            epochs: passes over the data.
            verbose: "auto" or 1 shows progress and tells what was chosen, 0 nothing.
            callbacks: as in Keras.
            validation_split: share of the texts, the last ones, to validate on.
            validation_data: `(x, y)`, `(x, y, sample_weight)` or a dataset.
            shuffle: a new order in each epoch; batches are of similar length.
            class_weight: {class index or label: weight}.
            sample_weight: one weight a text.
            steps_per_epoch: as in Keras; needed for a dataset of unknown length.
            validation_steps: the same for `validation_data`.
            initial_epoch: as in Keras.
            validation_batch_size: the same.
            validation_freq: the same.

        Returns: a `keras.callbacks.History`.

        Raises:
            ValueError: if the data are not what the task takes, before any training.
        """
        with fitting.leaving_intact(self):
            arguments = fitting.prepare_fit(
                self,
                (x, y, sample_weight),
                class_weight,
                validation_data if validation_data is not None else validation_split,
                batch_sizes=(batch_size, validation_batch_size),
                steps=(steps_per_epoch, validation_steps),
                epochs=epochs - initial_epoch,
                shuffle=shuffle,
                verbose=verbose,
            )
            return super().fit(
                **untuned(arguments),
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                initial_epoch=initial_epoch,
                validation_freq=validation_freq,
            )

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        return_dict=False,
        **kwargs,
    ):
        """Measures loss and metrics on raw text, ready arrays or a dataset.

        Takes `x`, `y`, `batch_size` and `sample_weight` as `fit` does, the rest as
        `keras.Model.evaluate`; `steps` goes with a dataset.

        Returns:
            The loss and metrics, a list or, with `return_dict`, a dictionary.
        """
        given = {"x": x, "y": y, "sample_weight": sample_weight}
        if "_use_cached_eval_dataset" not in kwargs:  # else `fit` has prepared them
            given = fitting.prepare_evaluation(self, given, batch_size, steps, verbose)
        return super().evaluate(
            **{"batch_size": batch_size, "steps": steps, **untuned(given)},
            verbose=verbose,
            callbacks=callbacks,
            return_dict=return_dict,
            **kwargs,
        )

    def predict(
        self, x, batch_size=None, verbose: Any = "auto", steps=None, callbacks=None
    ):
        """Returns the logits of every text, in order: floats, of two heads by name.

        Args:
            x: as for `fit`, without targets.
            batch_size: texts a step, on average; by default as many as make about
                2,048 tokens, on torch 768, and 32 at least.
            verbose: as in Keras.
            steps: as in Keras; it goes with a dataset.
            callbacks: as in Keras.
        """
        if self.behind_end is not None and feeding.is_dataset(x):
            return feeding.predict_each(self, x, batch_size, steps, callbacks)
        data = feeding.prepare_prediction(self, x, steps)
        arguments = data.predict_arguments(batch_size)
        fitting.tell(verbose, fitting.described(arguments["x"]))
        outputs = super().predict(
            **{"steps": steps, **untuned(arguments)},
            verbose=verbose,
            callbacks=callbacks,
        )
        return data.restore(outputs, arguments)

    def train_on_batch(
        self, x, y=None, sample_weight=None, class_weight=None, return_dict=False
    ):
        """Trains one step on one batch of texts or arrays, as in Keras.

        The automatic optimizer has a constant learning rate here.
        """
        replicas.check_one_process(self)
        data = feeding.prepare(self, x, y, sample_weight)
        if class_weight:
            data, class_weight = self.weigh_classes(data, class_weight)
        x, y, sample_weight = data.single_batch()
        if self.optimizer is None:
            self.compile_with(AdamW(self.choices.learning_rate))
        return super().train_on_batch(x, y, sample_weight, class_weight, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        """Measures one batch of texts or arrays, as in Keras."""
        x, y, sample_weight = feeding.prepare(self, x, y, sample_weight).single_batch()
        return super().test_on_batch(x, y, sample_weight, return_dict)

    def predict_on_batch(self, x):
        """Returns the logits of one batch of texts or arrays."""
        inputs, _, _ = feeding.prepare_prediction(self, x).single_batch()
        return super().predict_on_batch(inputs)

    def require_preprocessor(self):
        """Returns the preprocessor; raises where nothing turns text into ids."""
        if self.preprocessor is None:
            raise ValueError(
                "Text needs a preprocessor: pass kbert.BertPreprocessor(…) as "
                f"`preprocessor`. Received: a {type(self).__name__} without one."
            )
        return self.preprocessor

    def compile_with(self, optimizer):
        """Compiles as before, but with another optimizer."""
        super().compile(optimizer=optimizer, **self.choices.arguments)

    # Freezing, LoRA, a larger vocabulary ---------------------------------------------

    def freeze_backbone(self):
        """Leaves only the head to train."""
        self.backbone.trainable = False
        compiling.compile_again(self)

    enable_lora = lora.enable
    with_added_tokens = growing.with_added_tokens

    # Presets and other files ---------------------------------------------------------

    @classmethod
    def from_preset(
        cls,
        preset,
        *,
        load_weights=True,
        allow_pickle=False,
        sequence_length=None,
        remat=False,
        dtype=None,
        name=None,
        **own,
    ):
        """Builds the task on a preset's encoder, with the head that the preset holds.

        A head that the preset lacks, or has for something else than is asked for, is
        random, which is told.

        Args:
            preset: a name, a folder, Google's zip, hf://… (`presets.find_preset`).
            load_weights: False for random weights.
            allow_pickle: True to read `pytorch_model.bin`, see `BertBackbone`.
            sequence_length: tokens of the longest text, or of a window; None for what
                the preset says, or else the model's positions.
            remat: True to train in less memory and more time, see `BertBackbone`.
            dtype: dtype or dtype policy, e.g. "mixed_bfloat16".
            name: of the model.
            **own: the arguments in `preset_arguments`, which the class explains; None
                for what the preset says. `long_text` is "truncate" or "head_tail".

        Raises:
            TypeError: if the class has no such argument.
        """
        saving.check_arguments(cls, own)
        parts = saving.read_parts(
            preset,
            load_weights=load_weights,
            allow_pickle=allow_pickle,
            sequence_length=sequence_length,
            long_text=own.pop("long_text", None),
        )
        encoder = {"remat": remat, "dtype": dtype}
        return saving.task_of_preset(cls, parts, own, encoder, name, load_weights)

    save_to_preset = saving.save_task
    push_to_hub = saving.push_task
    export = saving.export_task

    def get_config(self):
        """Returns the parts common to all tasks; a subclass adds its head's."""
        return {
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "preprocessor": keras.saving.serialize_keras_object(self.preprocessor),
            "name": self.name,
            "lora_rank": self.lora_rank,
            "frozen": frozen_paths(self),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Builds the task that `get_config` described, LoRA and frozen parts too."""
        return saving.task_from_config(cls, config, custom_objects)


def _abstract(task):
    return NotImplementedError(f"{type(task).__name__} must define this method.")

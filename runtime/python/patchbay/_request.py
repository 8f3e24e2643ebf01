"""The request to the client process, made from attach()'s arguments. Invalid arguments raise ConfigError here."""
import collections.abc
import hashlib
import json
import os

from . import _cuda, _ranks, errors


def of(arguments):
    """The request for attach()'s arguments by name. `ordinal` in it is for this process: the device's number."""
    rank, world_size = _ranks.find(arguments["rank"], arguments["world_size"])
    request = {"rank": rank, "world_size": world_size}
    device = _cuda.find(arguments["device"])
    if device is not None:
        request["ordinal"], request["device"] = device
    if isinstance(arguments["config"], collections.abc.Mapping):
        request["values"] = json.loads(_json("config", dict(arguments["config"])))
    else:
        request["file"] = _text("config", arguments["config"])
    request |= _overrides(arguments["overrides"])
    for key in ("split", "cluster", "data_policy", "data_listen", "name"):
        if arguments[key] is not None:
            request[key] = _text(key, arguments[key])
    if arguments["cpus"] is not None:
        request["cpus"] = json.loads(_json("cpus", arguments["cpus"]))
    if arguments["augment"] is not None:
        if not isinstance(arguments["augment"], bool):
            raise errors.ConfigError(f"attach: augment {arguments['augment']!r}: expected True, False or None")
        request["augment"] = arguments["augment"]
    launch = _ranks.rendezvous(world_size)
    if world_size > 1 and not request.get("name") and not launch:
        raise errors.ConfigError(f"attach: rank {rank} of {world_size}: nothing says which ranks belong together: give all of them "
                                 "one `name`, or start them with torchrun, or set MASTER_ADDR and MASTER_PORT")
    if arguments["cluster"] is None:
        request["share"] = launch or _ranks.this_process()
    return request


def _overrides(overrides):
    if not overrides:
        return {}
    if not isinstance(overrides, collections.abc.Mapping):
        raise errors.ConfigError(f"attach: overrides {overrides!r}: expected a dict, as {{'batch.prefetch': 4}}")
    return {"overrides": [f"{_text('overrides', key)}={_json(key, value)}" for key, value in overrides.items()]}


def _text(name, value):
    try:
        return os.fsdecode(value)
    except TypeError as error:
        raise errors.ConfigError(f"attach: {name} {value!r}: expected a text or a path") from error


def _json(name, value):
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.ConfigError(f"attach: {name}: {error}: expected numbers, texts, lists and dicts, as a run config has") from error


def shared_name(request, token):
    """The name under which ranks meet: of the same config and split, at the same position. Another position is another
    run of the same plan: bytes depend on the plan alone."""
    place = "" if token is None else f"@{token.epoch}.{token.batch}"
    if request.get("name"):
        split = f"-{request['split']}" if request.get("split") else ""
        augment = {None: "", True: "-augmented", False: "-plain"}[request.get("augment")]
        return request["name"] + split + augment + place
    launch = _ranks.rendezvous(request["world_size"])
    if request["world_size"] == 1 or not launch:
        return ""
    parts = [launch, place] + [request.get(key) for key in ("file", "values", "overrides", "split", "augment")]
    return "run-" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

"""Owns the guard: it decides on every action, and nothing is carried out but a command that it authorised.

The ledger takes no trade but an `Authorised` one, and none but this module can make that, so a way around the guard
neither type-checks nor runs. A guard that fails denies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, Literal, NamedTuple, NoReturn, TypeVar

from apex_env.contract import Action, Contract, Reason, Spent, Verdict, evaluate, policy_version
from apex_env.protocol import Decision

Mode = Literal["off", "shadow", "enforce"]
C = TypeVar("C")

UNDECIDED: Final = Decision()
"""What a record holds where no guard is: everything is allowed, by no policy."""

_REASON_OF_ERROR: Final[Mapping[str, Reason]] = {
    "unknown_tool": "operation_not_allowed",
    "after_finish": "after_end",
    "invalid_amount": "invalid_amount",
}
"""What a call that never became an action is denied for; for every other error there was nothing to decide."""
_SEAL: Final = object()


class Trade(NamedTuple):
    """A typed order for the ledger, with nothing left to interpret."""

    ticker: str
    amount_usd: float


class Denied(Exception):
    """The guard did not let an action through; nothing has come of it.

    Attributes:
        decision: what was decided, and why.
    """

    def __init__(self, decision: Decision) -> None:
        """Keep the decision."""
        super().__init__(decision.reason)
        self.decision = decision


class Authorised(Generic[C]):
    """A command that may be carried out, once; made by the guard alone, and never changed."""

    __slots__ = ("command",)
    command: C

    def __init__(self, command: C, seal: object) -> None:
        """Seal a command.

        Raises:
            PermissionError: if the seal is not the guard's own.
        """
        if seal is not _SEAL:
            raise PermissionError(f"{command!r} was not authorised: only the guard can make a command that is")
        object.__setattr__(self, "command", command)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse every change."""
        raise AttributeError(f"an authorised command is not changed: {name!r}")

    def __repr__(self) -> str:
        """Show the command."""
        return f"Authorised({self.command!r})"


class Guard:
    """Decides on every action of one run, under the contract in force."""

    def __init__(
        self, contract: Contract, mode: Mode, *, judge: Callable[[Contract, Action, Spent], Verdict] = evaluate
    ) -> None:
        """Begin under a contract.

        Args:
            contract: the version in force.
            mode: `off` decides nothing, `shadow` decides for the record only, `enforce` denies.
            judge: what gives the verdict; whatever goes wrong in it is a denial.
        """
        self.mode: Mode = mode
        self.spent = Spent()
        self._judge = judge
        self._contract = contract
        self._decisions: dict[Reason, Decision] = {}
        self.adopt(contract)

    @property
    def contract(self) -> Contract:
        """The version in force."""
        return self._contract

    @property
    def policy_version(self) -> str:
        """Name of what decisions are made by now."""
        return UNDECIDED.policy_version if self.mode == "off" else policy_version(self._contract)

    def denies(self, decision: Decision) -> bool:
        """Whether an action with this decision is held back."""
        return not decision.allowed and self.mode == "enforce"

    def adopt(self, contract: Contract) -> None:
        """Put another version in force; `apex_env.revisions` says when that may happen."""
        self._contract = contract
        self._decisions = {}

    def open_quarter(self) -> None:
        """Begin to count anew."""
        self.spent = Spent()

    def decide(self, action: Action) -> Decision:
        """Return the decision on an action, and count it if it is allowed; no error of the guard gets out of here."""
        if self.mode == "off":
            return UNDECIDED
        try:
            allowed, reason = self._judge(self._contract, action, self.spent)
        except Exception:  # Whatever broke, an action that was not decided on must not be let through.
            allowed, reason = False, "guard_error"
        if allowed:
            self.spent.n_calls += 1
            if action.effect == "communicate":
                self.spent.n_messages += 1
        return self._decision(allowed, reason)

    def of_error(self, code: str) -> Decision:
        """Return the decision on a call that never became an action, by the kind of its error."""
        if self.mode == "off":
            return UNDECIDED
        return self._decision(False, _REASON_OF_ERROR.get(code, "not_evaluated"))

    def authorise(self, command: C, decision: Decision) -> Authorised[C]:
        """Return a command that may be carried out.

        Args:
            command: what the action comes to, typed.
            decision: this guard's decision on the action.

        Raises:
            Denied: if the guard enforces and the decision denies.
        """
        if self.denies(decision):
            raise Denied(decision)
        return Authorised(command, _SEAL)

    def _decision(self, allowed: bool, reason: Reason) -> Decision:
        """Return one decision by reason: they are many, and alike."""
        found = self._decisions.get(reason)
        if found is None:
            found = self._decisions[reason] = Decision(allowed, reason, self.policy_version)
        return found


def replayed(ticker: str, amount_usd: float) -> Authorised[Trade]:
    """Return a trade of a past run as authorised: it was decided on when it was made, and books only follow."""
    return Authorised(Trade(ticker, amount_usd), _SEAL)

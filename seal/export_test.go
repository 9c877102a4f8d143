package seal

// SealWithEphemeral seals with a chosen ephemeral key, which only the vectors
// may do: a repeated ephemeral key would repeat key and nonce.
func SealWithEphemeral(ephemeral [KeySize]byte, to PublicKey, plaintext []byte) (string, error) {
	key, err := NewPrivateKey(ephemeral[:])
	if err != nil {
		return "", err
	}
	var shared [KeySize]byte
	if !agree(&shared, &ephemeral, &to.raw) {
		return "", ErrInvalidKey
	}
	public := key.Public().raw
	return string(appendShared(nil, &public, &shared, to, plaintext)), nil
}

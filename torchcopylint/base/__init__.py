"""The vocabulary that every layer speaks: findings, sites, gaps. Standard library only, no input or output."""
